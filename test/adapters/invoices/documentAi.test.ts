import { PDFDocument } from 'pdf-lib';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createDocumentAi, type LongExtraction } from '../../../adapters/invoices/documentAi.js';
import { exactMoney } from '../../../adapters/invoices/documentAiAnswer.js';
import { createInvoiceExtractor } from '../../../adapters/invoices/extractor.js';
import type { PageWords } from '../../../domain/invoices/pageWords.js';
import {
  type DocumentAiFake,
  documentOf,
  PROCESSOR,
  startDocumentAiFake,
} from '../../fakes/documentAiFake.js';

let fake: DocumentAiFake;

beforeAll(async () => {
  fake = await startDocumentAiFake();
});
afterAll(() => fake?.close());
beforeEach(() => fake.reset());

type More = { timeoutMs?: number; bucket?: string; endpoint?: string };

const extractorOver = (transport: 'grpc' | 'rest', more?: More) =>
  createInvoiceExtractor({ engines: ['document_ai'], documentAi: fake.settingsOver(transport, more) });

/** Sends a PDF of empty pages. */
async function read(transport: 'grpc' | 'rest', pages: number, more?: More, signal?: AbortSignal) {
  const sent = Array.from({ length: pages }, (_, at) => ({ page: at + 1, width: 595, height: 842 }));
  return createDocumentAi(fake.settingsOver(transport, more)).read(await emptyPdf(pages), sent, signal);
}

async function emptyPdf(pages: number): Promise<Uint8Array> {
  const document = await PDFDocument.create();
  for (let at = 0; at < pages; at += 1) document.addPage([595, 842]);
  return document.save();
}

const wordsOf = (pages: readonly PageWords[]) =>
  pages.map(({ words }) => words.map(({ text }) => text).join(' '));

describe.each(['grpc', 'rest'] as const)('Document AI over %s', (transport) => {
  it('gives words in points, and entities with exact amounts', async () => {
    const { pages, entities } = await read(transport, 2);
    expect(fake.requests.map(({ name }) => name.includes(PROCESSOR))).toEqual([true]);
    expect(wordsOf(pages)).toEqual(['🧾Page1 $1.50', '🧾Page2 $2.50']);
    expect(pages[1]).toMatchObject({ page: 2, width: 595, height: 842, engine: 'document_ai' });
    const [, amount] = pages[1]?.words ?? [];
    expect(amount).toMatchObject({ text: '$2.50', confidence: 0.875 });
    expect(amount?.x).toBeCloseTo(476);
    expect(amount?.y).toBeCloseTo(84.2);
    expect(amount?.width).toBeCloseTo(59.5);
    expect(entities).toMatchObject([
      {
        type: 'line_item',
        box: { page: 2 },
        properties: [{ type: 'line_item/amount', normalized: '-59240.59' }],
      },
      { type: 'invoice_date', normalized: '2026-08-01', box: null },
    ]);
  });

  it('is sent long documents in parts, whose pages keep their numbers', async () => {
    const { pages, entities } = await extractorOver(transport).extract(await emptyPdf(17));
    expect(fake.requests).toHaveLength(2);
    expect(pages.map(({ page }) => page)).toEqual(Array.from({ length: 17 }, (_, at) => at + 1));
    expect(wordsOf(pages).slice(14)).toEqual(['🧾Page15 $15.50', '🧾Page1 $1.50', '🧾Page2 $2.50']);
    expect(entities.filter(({ type }) => type === 'line_item').map(({ box }) => box?.page)).toEqual([15, 17]);
  });

  it.each([
    ['429', 8],
    ['unavailable', 14],
  ])('that answers %s may be asked again', async (_name, code) => {
    fake.answer = () => ({ code });
    await expect(read(transport, 1)).rejects.toMatchObject({
      code: 'ocr_unavailable',
      retryAfterSeconds: 30,
    });
    expect(fake.requests).toHaveLength(1);
  });

  it.each([
    ['an invalid argument', 3],
    ['a missing permission', 7],
    ['a missing processor', 5],
  ])('that answers %s is not asked again', async (_name, code) => {
    fake.answer = () => ({ code });
    await expect(read(transport, 1)).rejects.toMatchObject({
      code: 'ocr_unavailable',
      retryAfterSeconds: undefined,
    });
  });

  it('that hangs is given up at its deadline, or with the signal', async () => {
    fake.answer = () => 'hang';
    await expect(read(transport, 1, { timeoutMs: 300 })).rejects.toMatchObject({
      code: 'ocr_unavailable',
      retryAfterSeconds: 30,
    });
    const stop = new AbortController();
    fake.answer = () => {
      stop.abort(new Error('enough'));
      return 'hang';
    };
    await expect(read(transport, 1, {}, stop.signal)).rejects.toThrow('enough');
  });

  it.each<[string, (pages: number) => object]>([
    ['lacks a page', (pages) => documentOf(pages - 1)],
    [
      'has the same page twice',
      (pages) => {
        const document = documentOf(pages);
        return { ...document, pages: document.pages.map((page) => ({ ...page, pageNumber: 1 })) };
      },
    ],
    ['has no pages', () => ({ text: 'Total' })],
    ['has words outside its text', (pages) => ({ ...documentOf(pages), text: 'short' })],
    [
      'has pages without a size',
      (pages) => {
        const document = documentOf(pages);
        return { ...document, pages: document.pages.map(({ dimension: _, ...page }) => page) };
      },
    ],
  ])('whose answer %s gives nothing', async (_name, given) => {
    fake.answer = given;
    await expect(read(transport, 2)).rejects.toMatchObject({
      code: 'ocr_unavailable',
      retryAfterSeconds: undefined,
    });
  });
});

describe('a long operation of Document AI', () => {
  it('reads a long document through the bucket, is taken up again by its name, and leaves nothing there', async () => {
    const extractor = extractorOver('grpc', { bucket: 'invoices/drop' });
    const pdf = await emptyPdf(17);
    fake.answer = (_pages, { documentOutputConfig }) => {
      const folder = documentOutputConfig?.gcsOutputConfig.gcsUri.replace('gs://invoices/', '') ?? '';
      fake.bucket.set(`${folder}1/0/input-0.json`, Buffer.from(JSON.stringify(documentOf(17))));
      return { name: 'projects/p/locations/eu/operations/1', done: false };
    };
    let started: LongExtraction | undefined;
    const stop = new AbortController();
    const first = extractor.extract(pdf, {
      signal: stop.signal,
      onOperation: async (operation) => {
        started = operation;
        stop.abort(new Error('the worker ends'));
      },
    });
    await expect(first).rejects.toThrow('the worker ends');
    expect([...fake.bucket.keys()].some((name) => /^drop\/[^/]+\/input\.pdf$/.test(name))).toBe(true);
    if (!started) throw new Error('nothing started');
    const { pages } = await extractor.extract(pdf, { operation: JSON.parse(JSON.stringify(started)) });
    expect(fake.requests).toHaveLength(1);
    expect(wordsOf(pages).at(-1)).toBe('🧾Page17 $17.50');
    expect([...fake.bucket.keys()]).toEqual([]);
  });
});

describe('Document AI', () => {
  it('is not sent documents in plain text to another machine', async () => {
    await expect(read('rest', 1, { endpoint: 'http://10.0.0.5:80' })).rejects.toMatchObject({
      code: 'ocr_unavailable',
      message: /without encryption/,
    });
  });

  it('leaves its pages to the next engine when it is not set', async () => {
    const extractor = createInvoiceExtractor({ engines: ['document_ai', 'text'] });
    expect((await extractor.extract(await emptyPdf(1))).pages).toMatchObject([{ engine: 'text', words: [] }]);
  });

  it.each([
    ['59240', 590_000_000, '59240.59'],
    ['-5', -250_000_000, '-5.25'],
    ['0', -1, '-0.000000001'],
    ['9007199254740993', 0, '9007199254740993'],
  ])('states %s units and %s nanos as %s', (units, nanos, text) => {
    expect(exactMoney(units, nanos)).toBe(text);
  });
});
