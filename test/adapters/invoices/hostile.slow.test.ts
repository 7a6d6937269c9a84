import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { deflateSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { createInvoiceExtractor } from '../../../adapters/invoices/extractor.js';
import { startTypeScript } from '../../support/childProgram.js';
import { flateOf, textPdf, writePdf } from './hostilePdfs.js';

const extractor = createInvoiceExtractor({ engines: ['text', 'tesseract'] });

/** 600 MB of operators that deflate to about 600 kB. */
function flateBomb(): Uint8Array {
  const line = Buffer.alloc(1_048_576, 'BT /F1 9 Tf 50 700 Td (Total) Tj ET ');
  return textPdf(
    deflateSync(Buffer.concat(Array.from({ length: 600 }, () => line)), { level: 9 }),
    '/Filter /FlateDecode',
  );
}

describe('a PDF that needs too much', () => {
  it('is ended when it inflates to 600 MB (P-04)', async () => {
    const pdf = flateBomb();
    expect(pdf.length).toBeLessThan(4_000_000);
    await expect(extractor.extract(pdf)).rejects.toMatchObject({ code: 'resource_limit' });
    await expect(extractor.renderPage(pdf, 1)).rejects.toMatchObject({ code: 'resource_limit' });
  });

  it('is ended by the watchdog where the system has no prlimit (P-04)', async () => {
    const watched = createInvoiceExtractor({ engines: ['text'], limits: { usePrlimit: false } });
    await expect(watched.extract(flateBomb())).rejects.toMatchObject({ code: 'resource_limit' });
  });

  it('is ended when it has two million operators (P-05)', async () => {
    const operators = Buffer.from('BT /F1 9 Tf 50 700 Td (Total) Tj ET\n'.repeat(2_000_000));
    await expect(extractor.extract(flateOf(operators))).rejects.toMatchObject({ code: 'resource_limit' });
  });

  it('is refused with 10,000 pages before anything is recognized (P-03)', async () => {
    const kids = Array.from({ length: 10_000 }, (_, at) => `${at + 4} 0 R`).join(' ');
    const pages = Array.from(
      { length: 10_000 },
      () => '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] >>',
    );
    const pdf = writePdf([
      '<< /Type /Catalog /Pages 2 0 R >>',
      `<< /Type /Pages /Count 10000 /Kids [${kids}] >>`,
      '<< >>',
      ...pages,
    ]);
    await expect(extractor.extract(pdf)).rejects.toMatchObject({ code: 'too_many_pages' });
  });

  it('is not read on when the process that asked for it is killed', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'trueup-orphan-'));
    const file = join(folder, 'slow.pdf');
    try {
      writeFileSync(file, flateOf(Buffer.from('BT /F1 9 Tf 50 700 Td (Total) Tj ET\n'.repeat(2_000_000))));
      const program = startTypeScript('test/adapters/invoices/extractUntilKilled.ts', [file]);
      await program.sees(/reading/);
      const children = () =>
        spawnSync('pgrep', ['-f', `extractProgram.*`, '-P', String(program.pid)], {
          encoding: 'utf8',
        }).stdout.trim();
      const child = Number(children());
      expect(child).toBeGreaterThan(0);
      program.child.kill('SIGKILL');
      await program.ended();
      await expect.poll(() => isAlive(child), { timeout: 5_000 }).toBe(false);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
