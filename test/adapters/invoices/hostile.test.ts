import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { createInvoiceExtractor } from '../../../adapters/invoices/extractor.js';
import { looksLikePdf } from '../../../domain/invoices/looksLikePdf.js';
import { stream, textPdf, writePdf } from './hostilePdfs.js';

const extractor = createInvoiceExtractor({ engines: ['text'] });
const folder = mkdtempSync(join(tmpdir(), 'trueup-hostile-'));
afterAll(() => rmSync(folder, { recursive: true }));

const TEXT = Buffer.from(
  'BT /F1 10 Tf 50 700 Td (Invoice number 0001, date of issue August 1, 2026, total due $10.00) Tj ET',
);
const refused = (pdf: Uint8Array, code: string) =>
  expect(extractor.extract(pdf)).rejects.toMatchObject({ code });

describe('a file that is no PDF', () => {
  it('is told by its first bytes (P-01)', () => {
    expect(looksLikePdf(textPdf(TEXT))).toBe(true);
    expect(looksLikePdf(Buffer.concat([Buffer.alloc(900), textPdf(TEXT)]))).toBe(true);
    expect(looksLikePdf(Buffer.concat([Buffer.alloc(1_024), textPdf(TEXT)]))).toBe(false);
    expect(looksLikePdf(Buffer.alloc(0))).toBe(false);
    expect(looksLikePdf(Buffer.from('Invoice number 0001'))).toBe(false);
  });

  it.each([
    ['is empty', () => new Uint8Array()],
    ['is text', () => new TextEncoder().encode('%PDF-1.7 Invoice number 0001')],
    ['ends within its first objects', () => textPdf(TEXT).slice(0, 150)],
  ])('or %s is refused (P-01)', async (_name, pdf) => {
    await refused(pdf(), 'invalid_pdf');
  });
});

describe('a PDF', () => {
  it('that asks for a password is refused as encrypted (P-02)', async () => {
    const owner = `<${'ab'.repeat(32)}>`;
    const encrypt = `<< /Filter /Standard /V 1 /R 2 /Length 40 /P -44 /O ${owner} /U ${owner} >>`;
    const pdf = textPdf(TEXT, '', { more: [encrypt], trailer: `/Encrypt 6 0 R /ID [<01> <01>]` });
    await refused(pdf, 'invoice_encrypted');
  });

  it.each([
    ['is a circle', '<< /Type /Pages /Count 1 /Kids [2 0 R] >>'],
    ['claims two billion pages', '<< /Type /Pages /Count 2147483647 /Kids [] >>'],
    ['has no page', '<< /Type /Pages /Count 0 /Kids [] >>'],
  ])('whose page tree %s is refused (P-06)', async (_name, tree) => {
    const pdf = writePdf(['<< /Type /Catalog /Pages 2 0 R >>', tree]);
    const failure = await extractor.extract(pdf).catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: expect.stringMatching(/^(?:invalid_pdf|too_many_pages)$/) });
  });

  it('has its scripts, programs, links and attachments left alone (P-07)', async () => {
    const asked: string[] = [];
    const server = createServer((request, response) => {
      asked.push(request.url ?? '');
      response.end();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const made = join(folder, 'made-by-the-pdf');
    const script = `app.launchURL("${address}/script"); require("fs").writeFileSync("${made}", "x"); while (true) {}`;
    const pdf = textPdf(TEXT, '', {
      catalog:
        '/OpenAction 6 0 R /Names << /JavaScript << /Names [(a) 6 0 R] >> /EmbeddedFiles << /Names [(x.sh) 8 0 R] >> >> /AcroForm << /XFA 10 0 R /Fields [] >> /AA << /WC 7 0 R >>',
      more: [
        `<< /S /JavaScript /JS (${script.replace(/[()\\]/g, '\\$&')}) /Next 7 0 R >>`,
        `<< /S /Launch /F (/bin/sh) /Win << /F (touch ${made}) >> /Next << /S /URI /URI (${address}/link) >> >>`,
        '<< /Type /Filespec /F (x.sh) /EF << /F 9 0 R >> >>',
        stream(Buffer.from(`touch ${made}`)),
        stream(Buffer.from(`<xdp><template><script>${script}</script></template></xdp>`)),
      ],
    });
    try {
      const { pages } = await extractor.extract(pdf);
      expect(pages[0]?.words.map(({ text }) => text)).toContain('$10.00');
      expect((await extractor.renderPage(pdf, 1)).length).toBeGreaterThan(1_000);
      expect(asked).toEqual([]);
      expect(existsSync(made)).toBe(false);
    } finally {
      server.close();
    }
  });

  it('with more pages than an invoice may have is refused (P-03)', async () => {
    const page = '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] >>';
    const kids = Array.from({ length: 201 }, (_, at) => `${at + 3} 0 R`).join(' ');
    const tree = `<< /Type /Pages /Count 201 /Kids [${kids}] >>`;
    const pages = Array.from({ length: 201 }, () => page);
    await refused(writePdf(['<< /Type /Catalog /Pages 2 0 R >>', tree, ...pages]), 'too_many_pages');
  });

  it('whose reading takes more CPU time than allowed ends with its process', async () => {
    // Starting the process takes a second of it on a slow machine.
    const limited = createInvoiceExtractor({ engines: ['text'], limits: { cpuSecondsMax: 3 } });
    const operators = Buffer.from('q Q\n'.repeat(4_000_000));
    await expect(limited.extract(textPdf(operators))).rejects.toMatchObject({ code: 'resource_limit' });
  });
});
