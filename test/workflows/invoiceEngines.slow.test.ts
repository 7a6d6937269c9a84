import { ApplicationFailure } from '@temporalio/common';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createInvoiceExtractor } from '../../adapters/invoices/extractor.js';
import type { InvoiceExtraction } from '../../domain/invoices/pageWords.js';
import { type DocumentAiFake, OPERATION, startDocumentAiFake } from '../fakes/documentAiFake.js';
import { startTestApi, type TestApi } from '../support/api.js';
import { testExtractor } from '../support/blobs.js';
import { documentAiEntity, documentAiPages } from '../support/documentAiPages.js';
import { type RunningWorker, startTestEngine, type TestEngine, until } from '../support/engine.js';
import { invoicePdf } from '../support/invoicePdf.js';
import { INVOICES, processedInvoice, uploadInvoice } from '../support/invoices.js';

const TIMEOUT_MS = 3_000;
/** An invoice of so many pages that one request may not contain them. */
const LONG_LINES = 400;
/** `extracting` of workflows/activityOptions.ts. */
const EXTRACTION_ATTEMPTS = 24;

let api: TestApi;
let fake: DocumentAiFake;
let bytes: Buffer;
let words: InvoiceExtraction;
beforeAll(async () => {
  api = await startTestApi();
  fake = await startDocumentAiFake();
  bytes = await invoicePdf();
  words = await testExtractor().extract(bytes);
});
afterAll(async () => {
  fake?.close();
  await api?.close();
});
beforeEach(() => {
  fake.reset();
  fake.answer = () => documentAiPages(words);
});

type Transport = 'grpc' | 'rest';

/** A worker that reads invoices by Document AI alone. */
async function startEngine(
  transport: Transport,
  bucket?: string,
): Promise<TestEngine & { first: RunningWorker }> {
  const { extract } = createInvoiceExtractor({
    engines: ['document_ai'],
    documentAi: fake.settingsOver(transport, { timeoutMs: TIMEOUT_MS, ...(bucket ? { bucket } : {}) }),
  });
  const engine = await startTestEngine(api.database.database, {
    readsInvoices: true,
    extractInvoice: extract,
  });
  return Object.assign(engine, { first: await engine.startWorker() });
}

async function linesOf(key: string, id: string): Promise<unknown[]> {
  return (await api.get(`${INVOICES}/${id}`, key)).body.lines;
}

describe.each<Transport>(['grpc', 'rest'])('an invoice that Document AI reads over %s', (transport) => {
  let engine: TestEngine;
  beforeAll(async () => {
    engine = await startEngine(transport);
  });
  afterAll(() => engine?.close());

  async function upload() {
    const { adminKey: key } = await api.addOrganization();
    const { body } = await uploadInvoice(api, bytes, { key });
    engine.dispatcher.kick();
    return { key, id: body.invoice_id as string };
  }

  it('has every line with the place and the engine of its fields', async () => {
    const { key, id } = await upload();
    const invoice = await processedInvoice(api, id, key);
    expect(invoice).toMatchObject({
      status: 'needs_review',
      review_reasons: ['no_bill'],
      engine: 'document_ai',
      arithmetic_ok: true,
      extraction_confidence: 0.875,
    });
    expect(invoice.lines.map(({ amount }: { amount: number }) => amount)).toEqual([10, 20]);
    expect(invoice.lines[0].extracted.amount).toMatchObject({ engine: 'document_ai', box: { page: 1 } });
  });

  it('is read from the engine’s own fields where its words do not show the lines', async () => {
    const head = documentAiPages(words, ({ y }) => y < 235);
    const item = (description: string, quantity: string, unitPrice: string, amount: string) =>
      documentAiEntity(words, 'line_item', `${description} ${amount}`, [
        documentAiEntity(words, 'line_item/description', description),
        documentAiEntity(words, 'line_item/quantity', quantity),
        documentAiEntity(words, 'line_item/unit_price', unitPrice),
        documentAiEntity(words, 'line_item/amount', amount),
      ]);
    fake.answer = () => ({
      ...head,
      entities: [
        item('Claude Sonnet 4.5 input tokens', '1,000', '$0.01', '$10.00'),
        item('Claude Sonnet 4.5 output tokens', '2,000', '$0.01', '$20.00'),
        documentAiEntity(words, 'net_amount', '$30.00'),
        documentAiEntity(words, 'total_amount', '$30.00'),
        documentAiEntity(words, 'currency', 'USD'),
      ],
    });
    const { key, id } = await upload();
    const invoice = await processedInvoice(api, id, key);
    expect(invoice).toMatchObject({ engine: 'document_ai', arithmetic_ok: true, totals: { total: 30 } });
    expect(
      invoice.lines.map((line: Record<string, unknown>) => [line.description, line.quantity, line.amount]),
    ).toEqual([
      ['Claude Sonnet 4.5 input tokens', 1_000, 10],
      ['Claude Sonnet 4.5 output tokens', 2_000, 20],
    ]);
    const { amount } = invoice.lines[0].extracted;
    expect(amount).toMatchObject({ text: '$10.00', confidence: 0.9375, engine: 'document_ai' });
    const printed = words.pages[0]?.words.find(({ text }) => text === '$10.00');
    expect(amount.box.x).toBeCloseTo(printed?.x ?? 0, 0);
    expect(amount.box.y).toBeCloseTo(printed?.y ?? 0, 0);
  });

  it.each<[string, () => ReturnType<DocumentAiFake['answer']>]>([
    ['answers 429', () => ({ code: 8 })],
    ['answers 500', () => ({ code: 13 })],
    ['is unavailable', () => ({ code: 14 })],
    ['does not answer', () => 'hang'],
  ])('waits while it %s, without a line, and is read once it answers', async (_name, failing) => {
    fake.answer = failing;
    const { key, id } = await upload();
    await until(
      'a second attempt',
      async () => fake.requests.length,
      (requests) => requests >= 2,
    );
    expect((await api.get(`${INVOICES}/${id}`, key)).body).toMatchObject({ status: 'extracting', lines: [] });
    fake.answer = () => documentAiPages(words);
    const invoice = await processedInvoice(api, id, key);
    expect(invoice).toMatchObject({ status: 'needs_review', run: { status: 'succeeded' } });
    expect(invoice.lines).toHaveLength(2);
  });

  it('fails once all attempts are used, without a line, and is read by a retry', async () => {
    const { extract } = createInvoiceExtractor({
      engines: ['document_ai'],
      // Each attempt asks again until then.
      documentAi: fake.settingsOver(transport, { timeoutMs: 1_000 }),
    });
    const hasty = await startTestEngine(api.database.database, {
      readsInvoices: true,
      extractInvoice: extract,
    });
    // The product's attempts without the five minutes of waits between them.
    await hasty.startWorker(({ extractInvoice }) => ({
      extractInvoice: (run) =>
        extractInvoice(run).catch(({ message, type, nonRetryable }: ApplicationFailure) => {
          throw ApplicationFailure.create({
            message,
            ...(type ? { type } : {}),
            nonRetryable: nonRetryable ?? false,
            nextRetryDelay: '10 milliseconds',
          });
        }),
    }));
    try {
      fake.answer = () => ({ code: 14 });
      const { adminKey: key } = await api.addOrganization();
      const { body } = await uploadInvoice(api, bytes, { key });
      hasty.dispatcher.kick();
      const id = body.invoice_id as string;
      expect(await processedInvoice(api, id, key)).toMatchObject({
        status: 'failed',
        failure_code: 'ocr_unavailable',
        lines: [],
        run: { status: 'failed', error: { code: 'ocr_unavailable' } },
      });
      expect(fake.requests).toHaveLength(EXTRACTION_ATTEMPTS);
      fake.answer = () => documentAiPages(words);
      expect((await api.post(`${INVOICES}/${id}/retry`, {}, key)).status).toBe(202);
      hasty.dispatcher.kick();
      const invoice = await processedInvoice(api, id, key);
      expect(invoice).toMatchObject({ status: 'needs_review', failure_code: null });
      expect(invoice.lines).toHaveLength(2);
    } finally {
      await hasty.close();
    }
  });

  it.each<[string, () => ReturnType<DocumentAiFake['answer']>]>([
    ['refuses the service', () => ({ code: 7 })],
    ['leaves out a page', () => ({ ...documentAiPages(words), pages: [] })],
    ['has words outside its text', () => ({ ...documentAiPages(words), text: 'short' })],
    ['has no text', () => ({ pages: documentAiPages(words).pages })],
  ])('fails without a line where it %s', async (_name, wrong) => {
    fake.answer = wrong;
    const { key, id } = await upload();
    const invoice = await processedInvoice(api, id, key);
    expect(invoice).toMatchObject({
      status: 'failed',
      failure_code: 'ocr_unavailable',
      lines: [],
      run: { status: 'failed', error: { code: 'ocr_unavailable' } },
    });
    expect(fake.requests).toHaveLength(1);
  });
});

describe('an invoice of many pages that Document AI reads', () => {
  const AMOUNT = 30 / LONG_LINES;
  let long: Buffer;
  let longWords: InvoiceExtraction;
  beforeAll(async () => {
    long = await longInvoice();
    longWords = await testExtractor().extract(long);
    expect(longWords.pages.length).toBeGreaterThan(15);
  });

  function longInvoice(): Promise<Buffer> {
    const lines = Array.from({ length: LONG_LINES }, (_, at) => ({
      description: `Claude Sonnet 4.5 input tokens, project ${at + 1}`,
      quantity: '10',
      unitPrice: '$0.0075',
      amount: `$${AMOUNT.toFixed(3)}`,
    }));
    return invoicePdf({ lines });
  }

  /** The answer to a part of the pages, from the first of which on they count from 1. */
  function partOf(from: number, count: number) {
    const pages = longWords.pages.slice(from, from + count).map((page, at) => ({ ...page, page: at + 1 }));
    return documentAiPages({ ...longWords, pages });
  }

  it('is stored with no line while its second part is not read, and then with all', async () => {
    const engine = await startEngine('grpc');
    try {
      const { adminKey: key } = await api.addOrganization();
      let isBroken = true;
      fake.answer = (pages) => {
        if (pages === 15) return partOf(0, 15);
        return isBroken ? { code: 14 } : partOf(15, pages);
      };
      const { body } = await uploadInvoice(api, long, { key });
      engine.dispatcher.kick();
      await until(
        'a second attempt at the second part',
        async () => fake.requests.length,
        (requests) => requests >= 4,
      );
      expect(await linesOf(key, body.invoice_id)).toEqual([]);
      isBroken = false;
      const invoice = await processedInvoice(api, body.invoice_id, key);
      expect(invoice.lines).toHaveLength(LONG_LINES);
      expect(invoice.pages).toBe(longWords.pages.length);
    } finally {
      await engine.close();
    }
  });

  function answerByOperation(): void {
    fake.answer = (_pages, { documentOutputConfig }) => {
      const folder = documentOutputConfig?.gcsOutputConfig.gcsUri.replace('gs://invoices/', '') ?? '';
      const output = partOf(0, longWords.pages.length);
      fake.bucket.set(`${folder}1/0/input-0.json`, Buffer.from(JSON.stringify(output)));
      return { name: OPERATION, done: false };
    };
  }

  it('is read by the operation of the first worker where a second one takes its place', async () => {
    const engine = await startEngine('grpc', 'invoices/drop');
    try {
      const { adminKey: key } = await api.addOrganization();
      fake.pollsUntilDone = 1_000_000;
      answerByOperation();
      const { body } = await uploadInvoice(api, long, { key });
      engine.dispatcher.kick();
      await until(
        'polls by the first worker',
        async () => fake.polls,
        (polls) => polls > 5,
      );
      await engine.first.stop();
      const polls = fake.polls;
      await engine.startWorker();
      await until(
        'polls by the second worker',
        async () => fake.polls,
        (later) => later > polls + 5,
      );
      fake.pollsUntilDone = fake.polls;
      const invoice = await processedInvoice(api, body.invoice_id, key);
      expect(invoice.lines).toHaveLength(LONG_LINES);
      expect(fake.requests).toHaveLength(1);
      expect([...fake.bucket.keys()]).toEqual([]);
    } finally {
      await engine.close();
    }
  });

  it('is read by another operation where the first one fails for a time', async () => {
    const engine = await startEngine('grpc', 'invoices/drop');
    try {
      const { adminKey: key } = await api.addOrganization();
      answerByOperation();
      fake.operationError = { code: 14, message: 'try again later' };
      const { body } = await uploadInvoice(api, long, { key });
      engine.dispatcher.kick();
      await until(
        'a second operation',
        async () => fake.requests.length,
        (requests) => requests >= 2,
      );
      expect(await linesOf(key, body.invoice_id)).toEqual([]);
      fake.operationError = undefined;
      const invoice = await processedInvoice(api, body.invoice_id, key);
      expect(invoice.lines).toHaveLength(LONG_LINES);
      expect([...fake.bucket.keys()]).toEqual([]);
    } finally {
      await engine.close();
    }
  });

  it('is read by one long operation, which is asked for once and polled until it is done', async () => {
    const engine = await startEngine('grpc', 'invoices/drop');
    try {
      const { adminKey: key } = await api.addOrganization();
      fake.pollsUntilDone = 1_000_000;
      answerByOperation();
      const { body } = await uploadInvoice(api, long, { key });
      engine.dispatcher.kick();
      await until(
        'polls',
        async () => fake.polls,
        (polls) => polls > 50,
      );
      expect(await linesOf(key, body.invoice_id)).toEqual([]);
      fake.pollsUntilDone = fake.polls;
      const invoice = await processedInvoice(api, body.invoice_id, key);
      expect(invoice.lines).toHaveLength(LONG_LINES);
      expect(fake.requests).toHaveLength(1);
      expect([...fake.bucket.keys()]).toEqual([]);
    } finally {
      await engine.close();
    }
  });
});
