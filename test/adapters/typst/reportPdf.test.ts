import { PDFDict, PDFDocument, PDFName } from 'pdf-lib';
import { getDocument } from 'pdfjs-dist/legacy/build/pdf.mjs';
import { beforeAll, describe, expect, it } from 'vitest';
import { Renderer } from '../../../adapters/typst/renderer.js';
import { renderReportPdf } from '../../../adapters/typst/reportPdf.js';
import type { ReportFigures } from '../../../domain/reports/figures.js';
import { REPORT_SECTIONS } from '../../../domain/reports/report.js';
import { type ReportDocument, reportDocument } from '../../../domain/reports/reportDocument.js';
import { pdfTextOf } from '../../support/pdfText.js';
import { reportFigures } from '../../support/reportFigures.js';

const BRANDING = { orgName: 'Fjäll & Søn', brandColor: '#1F4FD8', footerText: 'Fjäll & Søn · trueup.test' };
const renderer = new Renderer();

const documentOf = (figures: ReportFigures): ReportDocument =>
  reportDocument(figures, REPORT_SECTIONS, BRANDING);
const render = (document: ReportDocument) =>
  renderReportPdf(renderer, document, { logo: undefined, generatedAt: '2026-11-05T12:00:00Z' });

/** Height of a page, its margins and a title. */
const A4_POINTS = 842;
const HEAD_POINTS = 68;
const FOOT_POINTS = 62;
const TITLE_POINTS = 15;

interface StructNode {
  role: string;
  alt?: string;
  lang?: string;
  children?: StructNode[];
}

const nodesOf = (node: StructNode): StructNode[] => [node, ...(node.children ?? []).flatMap(nodesOf)];

async function open(bytes: Uint8Array) {
  return getDocument({ data: new Uint8Array(bytes), verbosity: 0 }).promise;
}

async function structureOf(bytes: Uint8Array): Promise<StructNode[]> {
  const pdf = await open(bytes);
  const nodes: StructNode[] = [];
  for (let page = 1; page <= pdf.numPages; page += 1)
    nodes.push(...nodesOf((await (await pdf.getPage(page)).getStructTree()) as StructNode));
  return nodes;
}

describe('the PDF of a report', () => {
  let pdf: Buffer;
  let document: ReportDocument;
  beforeAll(async () => {
    document = documentOf(reportFigures({ teams: 40 }));
    pdf = await render(document);
  });

  it('declares PDF/UA-1, its title and its language, and is tagged', async () => {
    const opened = await open(pdf);
    const { info, metadata } = (await opened.getMetadata()) as unknown as {
      info: Record<string, unknown>;
      metadata: { get(name: string): unknown; getRaw(): string };
    };
    expect(metadata.getRaw()).toMatch(/<pdfuaid:part>1<\/pdfuaid:part>/);
    expect(info).toMatchObject({ Title: 'Management report, Fjäll & Søn, 1 – 31 Oct 2026', Language: 'en' });
    expect(await opened.getMarkInfo()).toMatchObject({ Marked: true });
    expect(await opened.getViewerPreferences()).toMatchObject({ DisplayDocTitle: true });
  });

  it('has a heading for each section in its order, tables with header cells, and a text for each chart', async () => {
    const nodes = await structureOf(pdf);
    const roles = new Map<string, number>();
    for (const { role } of nodes) roles.set(role, (roles.get(role) ?? 0) + 1);
    expect(roles.get('H1')).toBe(REPORT_SECTIONS.length);
    expect(roles.get('Table')).toBeGreaterThanOrEqual(10);
    expect(roles.get('TH')).toBeGreaterThan(30);
    const figures = nodes.filter(({ role }) => role === 'Figure');
    expect(figures.map(({ alt }) => alt)).toEqual(document.sections.map(({ chart }) => chart?.alt));
    const { text } = await pdfTextOf(pdf);
    const places = document.sections.map(({ sources }) => text.indexOf(sources.slice(0, 20)));
    expect(places.every((place) => place >= 0)).toBe(true);
    expect(places).toEqual([...places].sort((a, b) => a - b));
  });

  it('begins a section on a new page where less than a third is left, and only there', async () => {
    const opened = await open(pdf);
    const titles = new Map(document.sections.map(({ title }) => [title, 0]));
    for (let number = 2; number <= opened.numPages; number += 1) {
      const { items } = await (await opened.getPage(number)).getTextContent();
      for (const item of items)
        if ('str' in item && titles.has(item.str) && item.height > 12)
          titles.set(item.str, item.transform[5]);
    }
    const lowest = FOOT_POINTS + (A4_POINTS - HEAD_POINTS - FOOT_POINTS) / 3 - 2 * TITLE_POINTS;
    for (const [title, y] of titles) expect(y, title).toBeGreaterThan(lowest);
    expect(opened.numPages).toBeLessThanOrEqual(6);
  });

  it('embeds every font', async () => {
    const loaded = await PDFDocument.load(pdf, { updateMetadata: false });
    const descriptors = loaded.context
      .enumerateIndirectObjects()
      .map(([, object]) => object)
      .filter(
        (object) =>
          object instanceof PDFDict && object.get(PDFName.of('Type')) === PDFName.of('FontDescriptor'),
      );
    expect(descriptors.length).toBeGreaterThan(2);
    for (const one of descriptors as PDFDict[])
      expect(['FontFile2', 'FontFile3'].some((name) => one.has(PDFName.of(name)))).toBe(true);
  });

  it('can be copied without invisible characters, and says of each page which it is', async () => {
    const { joined, pages, text } = await pdfTextOf(pdf);
    expect(joined).not.toMatch(/[\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u2064\ufeff]/);
    for (const [at, { lines }] of pages.entries())
      expect(lines.at(-1)?.text).toContain(`page ${at + 1} of ${pages.length}`);
    for (const { table } of document.sections.flatMap(({ tables }) => tables))
      for (const row of [...table.rows, table.total ?? []])
        for (const cell of row) expect(joined).toContain(cell.replace(/\s+/g, ''));
    expect(text).toContain('team-40-billing');
  });

  it('is the same bytes each time', async () => {
    expect((await render(document)).equals(pdf)).toBe(true);
  });
});

const cents = (text: string): bigint => BigInt(text.replace('−', '-').replace(/[$,.]/g, ''));

describe('the text of a report', () => {
  it.each([
    ['a month of 40 teams', reportFigures({ teams: 40 })],
    ['a year', reportFigures({ teams: 5, period: { fromDay: '2025-11-01', toDay: '2026-10-31' } })],
    ['100 days', reportFigures({ teams: 100, period: { fromDay: '2026-05-07', toDay: '2026-08-14' } })],
    [
      'a day of one team',
      reportFigures({ teams: 1, period: { fromDay: '2026-10-31', toDay: '2026-10-31' } }),
    ],
  ])('has tables that add up: %s', (_name, figures) => {
    let columns = 0;
    for (const { table } of documentOf(figures).sections.flatMap(({ tables }) => tables)) {
      const { total } = table;
      if (!total) continue;
      for (const [x, sum] of total.entries()) {
        if (!/^−?\$?[\d,]+(?:\.\d\d)?$/.test(sum)) continue;
        const values = table.rows.map((row) => row[x] ?? '').filter((text) => text !== '–');
        expect(values.reduce((all, text) => all + cents(text), 0n)).toBe(cents(sum));
        columns += 1;
      }
    }
    expect(columns).toBeGreaterThan(10);
  });

  it('says in a sentence where there is nothing to show, without chart and table', () => {
    for (const section of documentOf(reportFigures()).sections) {
      expect(section).toMatchObject({ isEmpty: true, chart: null, tables: [] });
      expect(section.sentences.join(' ')).toMatch(/^(?:No|Nothing)\b/);
    }
  });

  it('marks a period that is not over as provisional', () => {
    const period = { fromDay: '2026-11-01', toDay: '2026-11-30' };
    expect(documentOf(reportFigures({ period })).provisional).toMatch(
      /^Provisional: the period ends on 30 Nov 2026/,
    );
    expect(documentOf(reportFigures()).provisional).toBe('');
  });
});
