import { spawnSync } from 'node:child_process';
import { degrees, PDFDocument, StandardFonts } from 'pdf-lib';
import { describe, expect, it } from 'vitest';
import { createInvoiceExtractor } from '../../../adapters/invoices/extractor.js';

const extractor = createInvoiceExtractor({ engines: ['text', 'tesseract'] });

const LINES = [
  'Invoice number ABC-0001, date of issue August 1, 2026',
  'GPT-5 mini, input tokens          1,234,567    $0.00000125    $1.54',
  'Subtotal $1.54   Tax $0.00   Total $1.54',
];

/** Two pages; the second is turned by its /Rotate. */
async function digitalPdf(): Promise<Uint8Array> {
  const document = await PDFDocument.create();
  const font = await document.embedFont(StandardFonts.Helvetica);
  for (const rotation of [0, 90]) {
    const page = document.addPage([595, 842]);
    page.setRotation(degrees(rotation));
    for (const [at, line] of LINES.entries()) {
      if (rotation === 0) page.drawText(line, { x: 50, y: 780 - at * 20, size: 10, font });
      else page.drawText(line, { x: 60 + at * 20, y: 50, size: 10, font, rotate: degrees(90) });
    }
  }
  return document.save();
}

describe('the extractor', () => {
  it('reads the words of each page with their boxes in the upright page', async () => {
    const seen: number[] = [];
    const { pages, entities } = await extractor.extract(await digitalPdf(), {
      onPage: ({ page }) => seen.push(page),
    });
    expect(entities).toEqual([]);
    expect(seen).toEqual([1, 2]);
    expect(
      pages.map(({ page, engine, turn, width, height }) => ({ page, engine, turn, width, height })),
    ).toEqual([
      { page: 1, engine: 'text', turn: undefined, width: 595, height: 842 },
      { page: 2, engine: 'text', turn: undefined, width: 842, height: 595 },
    ]);
    const [first, second] = pages.map(({ words }) => words.map(({ text }) => text));
    expect(first).toEqual(LINES.flatMap((line) => line.split(/\s+/)));
    expect(second).toEqual(first);
    const total = pages[0]?.words.find(({ text }) => text === 'Total');
    expect(total?.x).toBeGreaterThan(50);
    expect((total?.y ?? 0) + (total?.height ?? 0)).toBeCloseTo(842 - 740 + 2.1, 0);
  });

  it('reads the bytes of a Buffer like those of a Uint8Array', async () => {
    const bytes = await digitalPdf();
    const { pages } = await extractor.extract(Buffer.from(bytes));
    expect(pages).toEqual((await extractor.extract(bytes)).pages);
  });

  it('reads a scan that lies upside down beside a page with text, and gives back how to turn it', async () => {
    const document = await PDFDocument.load(await digitalPdf());
    document.removePage(1);
    const image = await document.embedPng(await extractor.renderPage(await digitalPdf(), 1, { dpi: 200 }));
    const scan = document.addPage([595, 842]);
    scan.drawImage(image, { x: 595, y: 842, width: 595, height: 842, rotate: degrees(180) });
    document.addPage([595, 842]);
    const { pages } = await extractor.extract(await document.save());
    expect(pages.map(({ engine, turn }) => [engine, turn])).toEqual([
      ['text', undefined],
      ['tesseract', 180],
      ['tesseract', undefined],
    ]);
    const [text, ocr, blank] = pages.map(({ words }) => words.map(({ text }) => text));
    expect(ocr).toEqual(text);
    expect(blank).toEqual([]);
    for (const [at, word] of pages[0]?.words.entries() ?? [])
      expect(Math.abs((pages[1]?.words[at]?.x ?? 0) - word.x), word.text).toBeLessThan(5);
  });

  it('fails rather than leave out a page of pictures when no engine reads them', async () => {
    const pdf = await PDFDocument.create();
    const image = await pdf.embedPng(await extractor.renderPage(await digitalPdf(), 1, { dpi: 72 }));
    pdf.addPage([595, 842]).drawImage(image, { x: 0, y: 0, width: 595, height: 842 });
    const bytes = await pdf.save();
    await expect(extractor.extract(bytes, { engines: ['text'] })).rejects.toMatchObject({
      code: 'ocr_unavailable',
      retryAfterSeconds: undefined,
    });
    const blank = await PDFDocument.create();
    blank.addPage([595, 842]);
    const { pages } = await extractor.extract(await blank.save(), { engines: ['text'] });
    expect(pages.map(({ words }) => words)).toEqual([[]]);
  });

  it('draws a page as PNG and refuses one that is not there', async () => {
    const pdf = await digitalPdf();
    const png = await extractor.renderPage(pdf, 2, { dpi: 72 });
    expect(png.subarray(1, 4).toString()).toBe('PNG');
    expect([png.readUInt32BE(16), png.readUInt32BE(20)]).toEqual([842, 595]);
    await expect(extractor.renderPage(pdf, 3)).rejects.toMatchObject({ code: 'not_found' });
  });

  it('has a process wait for the next document, one for each, and ends it when none comes', async () => {
    const waiting = createInvoiceExtractor({ engines: ['text'], spareMs: 2_000 });
    const processes = () =>
      spawnSync('pgrep', ['-P', String(process.pid), '-f', 'extractProgram'], {
        encoding: 'utf8',
      }).stdout.trim();
    const before = processes();
    waiting.prepare();
    waiting.prepare();
    await expect.poll(processes).toMatch(/^\d+$/);
    const first = processes();
    expect(before).toBe('');
    expect((await waiting.extract(await digitalPdf())).pages).toHaveLength(2);
    await expect.poll(processes).not.toContain(first);
    const second = processes();
    expect(second).toMatch(/^\d+$/);
    await expect.poll(processes).toBe('');
  });

  it('ends with its signal', async () => {
    const pdf = await digitalPdf();
    await expect(extractor.extract(pdf, { signal: AbortSignal.abort(new Error('enough')) })).rejects.toThrow(
      'enough',
    );
    const stop = new AbortController();
    const read = extractor.extract(pdf, {
      signal: stop.signal,
      onPage: () => stop.abort(new Error('enough')),
    });
    await expect(read).rejects.toThrow('enough');
  });
});
