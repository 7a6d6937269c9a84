/**
 * Draws the boxes of the fields that are read of generated invoices, for a developer to look at:
 * `npx tsx lab/invoices/drawBoxes.ts --out FOLDER [--generator first] [--kind digital] [--seed 1] [--pick 0,1,2]`.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { createCanvas, loadImage } from '@napi-rs/canvas';
import { createInvoiceExtractor } from '../../adapters/invoices/extractor.js';
import type { ReadField } from '../../domain/invoices/invoiceReading.js';
import { readInvoice } from '../../domain/invoices/readInvoice.js';
import type { Provider } from '../../domain/providers.js';
import type { GeneratedInvoice } from '../generators/invoiceTruth.js';
import { INVOICE_GENERATORS, INVOICE_KINDS, type InvoiceGenerator, type InvoiceKindName } from './judge.js';
import { scanInvoice } from './scan.js';

const DPI = 110;
const POINTS_PER_INCH = 72;

const { values } = parseArgs({
  options: {
    out: { type: 'string' },
    generator: { type: 'string', default: 'first' },
    kind: { type: 'string', default: 'digital' },
    seed: { type: 'string', default: '1' },
    pick: { type: 'string', default: '0,1,2,3' },
  },
});

/** Every field of a reading with its path, such as `lines.3.amount`. */
function* fieldsOf(value: unknown, path: string): Generator<[string, ReadField<unknown>]> {
  if (value === null || typeof value !== 'object') return;
  if ('confidence' in value && 'box' in value) yield [path, value as ReadField<unknown>];
  else
    for (const [name, part] of Object.entries(value))
      yield* fieldsOf(part, path === '' ? name : `${path}.${name}`);
}

async function drawInvoice({ name, pdf: digital, truth }: GeneratedInvoice, out: string): Promise<void> {
  const dpi = INVOICE_KINDS[values.kind as InvoiceKindName];
  const pdf = new Uint8Array(
    dpi === 0 ? digital : await scanInvoice(digital, { dpi, seed: Number(values.seed) }),
  );
  const extractor = createInvoiceExtractor({ engines: ['text', 'tesseract'] });
  const extraction = await extractor.extract(pdf);
  const reading = readInvoice(extraction, { provider: truth.supplier as Provider });
  const fields = [...fieldsOf(reading, '')];
  for (const { page, turn } of extraction.pages) {
    const image = await loadImage(await extractor.renderPage(pdf, page, { dpi: DPI, turn }));
    const canvas = createCanvas(image.width, image.height);
    const context = canvas.getContext('2d');
    context.drawImage(image, 0, 0);
    context.scale(DPI / POINTS_PER_INCH, DPI / POINTS_PER_INCH);
    context.font = '4px sans-serif';
    for (const [path, { box, text }] of fields) {
      if (box?.page !== page) continue;
      context.strokeStyle = path.startsWith('lines') ? '#0060ff' : '#e00000';
      context.fillStyle = context.strokeStyle;
      context.lineWidth = 0.6;
      context.strokeRect(box.x, box.y, box.width, box.height);
      context.fillText(`${path.replace('lines.', '')} ${text.slice(0, 24)}`, box.x, box.y - 1);
    }
    writeFileSync(join(out, `${name}-${values.kind}-${page}.png`), canvas.toBuffer('image/png'));
  }
}

if (values.out === undefined) throw new Error('--out names the folder of the images');
mkdirSync(values.out, { recursive: true });
const picked = new Set(values.pick.split(',').map(Number));
let at = 0;
for await (const invoice of INVOICE_GENERATORS[values.generator as InvoiceGenerator](
  Number(values.seed),
  Math.max(...picked) + 1,
)) {
  if (picked.has(at)) await drawInvoice(invoice, values.out);
  at += 1;
}
