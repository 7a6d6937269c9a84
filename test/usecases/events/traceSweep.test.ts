import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadPriceBook } from '../../../db/pricing/prices.js';
import type { PriceBook } from '../../../domain/pricing/priceBook.js';
import { sweepTraces } from '../../../usecases/events/traceSweep.js';
import { startTestApi, type TestApi, type TestOrganization } from '../../support/api.js';
import { holdBack, untilNothingHoldsBack } from '../../support/horizon.js';

interface UsageReport {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  responseId?: string;
  input: number;
  output: number;
  reasoning?: number;
  model?: string;
}

const hex = (bytes: number) => randomBytes(bytes).toString('hex');
const start = BigInt(Date.now() - 60_000) * 1_000_000n;
let api: TestApi;
let prices: PriceBook;
let clock = 0n;

beforeAll(async () => {
  api = await startTestApi();
  prices = await loadPriceBook(api.database.database);
});
afterAll(() => api.close());

/** Sends one span a request, so that the reports arrive separately. */
async function tell(organization: TestOrganization, told: UsageReport): Promise<void> {
  clock += 1_000_000n;
  const attributes = {
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': 'openai',
    'gen_ai.request.model': told.model ?? 'gpt-4o',
    'gen_ai.usage.input_tokens': told.input,
    'gen_ai.usage.output_tokens': told.output,
    ...(told.reasoning === undefined ? {} : { 'gen_ai.usage.reasoning.output_tokens': told.reasoning }),
    ...(told.responseId === undefined ? {} : { 'gen_ai.response.id': told.responseId }),
  };
  const span = {
    traceId: told.traceId,
    spanId: told.spanId,
    ...(told.parentSpanId === undefined ? {} : { parentSpanId: told.parentSpanId }),
    name: 'chat',
    startTimeUnixNano: String(start + clock),
    endTimeUnixNano: String(start + clock + 1_000_000_000n),
    attributes: Object.entries(attributes).map(([key, value]) => ({
      key,
      value: typeof value === 'number' ? { intValue: value } : { stringValue: value },
    })),
  };
  const answer = await api.post(
    '/api/v1/ingest/trace',
    { resourceSpans: [{ scopeSpans: [{ spans: [span] }] }] },
    organization.ingestKey,
  );
  expect(answer.status).toBe(202);
}

const sweep = () => sweepTraces(api.database.database, { of: async () => prices });

/** Input tokens of the counting calls once all reports sent so far were swept. */
async function liveInputs(organization: TestOrganization): Promise<number[]> {
  await untilNothingHoldsBack(api.database.superuser);
  await sweep();
  return countedInputs(organization);
}

async function countedInputs(organization: TestOrganization): Promise<number[]> {
  const { body } = await api.get('/api/v1/events', organization.adminKey);
  const summary = await api.get('/api/v1/usage/summary', organization.adminKey);
  expect(summary.body.call_count).toBe(body.count);
  return (body.events as { input_tokens: number }[]).map((event) => event.input_tokens).sort((a, b) => a - b);
}

describe('reports of one call in different requests', () => {
  it('an outer span that duplicates one inner call does not absorb its sibling that comes later', async () => {
    const organization = await api.addOrganization();
    const traceId = hex(16);
    const outer = hex(8);
    await tell(organization, { traceId, spanId: hex(8), parentSpanId: outer, input: 100, output: 10 });
    await tell(organization, {
      traceId,
      spanId: outer,
      input: 100,
      output: 10,
      reasoning: 5,
      responseId: `chatcmpl-${hex(6)}`,
    });
    expect(await liveInputs(organization)).toEqual([100]);
    await tell(organization, { traceId, spanId: hex(8), parentSpanId: outer, input: 700, output: 70 });
    expect(await liveInputs(organization)).toEqual([100, 700]);
  });

  it('a report whose relative was superseded by a span of another trace joins the event that counts', async () => {
    const organization = await api.addOrganization();
    const traceId = hex(16);
    const outer = hex(8);
    const responseId = `chatcmpl-${hex(6)}`;
    await tell(organization, {
      traceId,
      spanId: hex(8),
      parentSpanId: outer,
      input: 100,
      output: 10,
      responseId,
    });
    await tell(organization, {
      traceId: hex(16),
      spanId: hex(8),
      input: 100,
      output: 10,
      reasoning: 5,
      responseId,
    });
    expect(await liveInputs(organization)).toEqual([100]);
    await tell(organization, { traceId, spanId: outer, input: 100, output: 10 });
    expect(await liveInputs(organization)).toEqual([100]);
  });

  it('sweeping again changes nothing', async () => {
    const organization = await api.addOrganization();
    const traceId = hex(16);
    const outer = hex(8);
    await tell(organization, { traceId, spanId: outer, input: 50, output: 5 });
    await tell(organization, { traceId, spanId: hex(8), parentSpanId: outer, input: 50, output: 5 });
    expect(await liveInputs(organization)).toEqual([50]);
    expect((await sweep()).superseded).toBe(0);
    expect(await liveInputs(organization)).toEqual([50]);
  });

  it('a later sweep finds what an open transaction of any database of the server kept from a sweep', async () => {
    const organization = await api.addOrganization();
    const [traceId, outer] = [hex(16), hex(8)];
    const letGo = await holdBack(api.database.url);
    try {
      await tell(organization, { traceId, spanId: outer, input: 50, output: 5 });
      await tell(organization, { traceId, spanId: hex(8), parentSpanId: outer, input: 50, output: 5 });
      expect((await sweep()).superseded).toBe(0);
      expect(await countedInputs(organization)).toEqual([50, 50]);
    } finally {
      await letGo();
    }
    expect(await liveInputs(organization)).toEqual([50]);
  });
});
