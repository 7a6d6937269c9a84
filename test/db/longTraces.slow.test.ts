import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadPriceBook } from '../../db/pricing/prices.js';
import { INGEST_ITEMS_MAX, TRACE_SPANS_MAX } from '../../domain/events/event.js';
import type { PriceBook } from '../../domain/pricing/priceBook.js';
import { encodeOtlp, type OtlpSpan } from '../../lab/bench/support/worstRequests/otlpBytes.js';
import { bodyOf, bodyOfShape, plainCall, text } from '../../lab/bench/support/worstRequests/traceShapes.js';
import { sweepTraces } from '../../usecases/events/traceSweep.js';
import { startTestApi, type TestApi, type TestOrganization } from '../support/api.js';
import { untilNothingHoldsBack } from '../support/horizon.js';
import { longestPause } from '../support/longestPause.js';

/** The longest block of the event loop, as a share of a sweep (0.07 to 0.15 measured); without pauses it is nearly 1. */
const PAUSE_SHARE_MAX = 0.33;

let api: TestApi;
let prices: PriceBook;

beforeAll(async () => {
  api = await startTestApi();
  prices = await loadPriceBook(api.database.database);
});
afterAll(() => api.close());

async function send(organization: TestOrganization, spans: OtlpSpan[]): Promise<void> {
  const response = await fetch(`${api.baseUrl}/v1/traces`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${organization.ingestKey}`,
      'content-type': 'application/x-protobuf',
    },
    body: new Uint8Array(encodeOtlp(bodyOf(spans))),
  });
  await response.arrayBuffer();
  expect(response.status).toBe(202);
}

async function sweep() {
  await untilNothingHoldsBack(api.database.superuser);
  const sum = { superseded: 0, longTraces: 0 };
  for (let more = true; more; ) {
    const swept = await sweepTraces(api.database.database, { of: async () => prices });
    sum.superseded += swept.superseded;
    sum.longTraces += swept.longTraces;
    more = swept.more;
  }
  return sum;
}

/** Calls that count. */
async function countLive(organization: TestOrganization): Promise<number> {
  const { body } = await api.get('/api/v1/usage/summary', organization.adminKey);
  return body.call_count as number;
}

function spansOf(shape: Parameters<typeof bodyOfShape>[0]): OtlpSpan[] {
  return bodyOfShape(shape).resourceSpans.flatMap(({ scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) => spans),
  );
}

describe('the sweep of a trace', () => {
  it('compares as many spans as a request may hold', () => {
    expect(TRACE_SPANS_MAX).toBeGreaterThanOrEqual(INGEST_ITEMS_MAX);
  });

  it('joins calls among the last spans of a long trace, and keeps what came before as it was', async () => {
    const organization = await api.addOrganization();
    // Two pairs of an outer and an inner call, with spans between them that are not calls.
    const spans = spansOf({
      name: 'pairs',
      spans: TRACE_SPANS_MAX + 4,
      parent: (index) => (index === 1 ? 0 : index === 3 ? 2 : index < 4 ? undefined : 0),
      attributes: (index) => (index < 4 ? plainCall() : [text('http.route', '/')]),
    });
    const [oldOuter, oldInner, newOuter, newInner, ...others] = spans as [
      OtlpSpan,
      OtlpSpan,
      OtlpSpan,
      OtlpSpan,
      ...OtlpSpan[],
    ];
    await send(organization, [oldInner]);
    await send(organization, others.slice(0, INGEST_ITEMS_MAX));
    await send(organization, [newInner]);
    await send(organization, [oldOuter, newOuter]);
    const { superseded, longTraces } = await sweep();
    expect(superseded).toBe(1);
    expect(longTraces).toBeGreaterThan(0);
    // The old pair is stored and counts as two calls; the new pair is one.
    expect(await countLive(organization)).toBe(3);
  });

  const isOdd = (index: number) => index % 2 === 1;
  it.each([
    ['a star', (index: number) => (index === 0 ? undefined : 0), (index: number) => index > 0, 9_999],
    ['a chain', (index: number) => (index === 0 ? undefined : index - 1), isOdd, 1],
    [
      'a comb',
      (index: number) => (index === 0 ? undefined : index - (isOdd(index) ? 1 : 2)),
      isOdd,
      undefined,
    ],
  ])(
    'lets others run while it resolves %s of as many calls, sent apart',
    async (name, parent, isFirst, live) => {
      const organization = await api.addOrganization();
      const spans = spansOf({ name, spans: TRACE_SPANS_MAX, parent });
      await send(
        organization,
        spans.filter((_, index) => isFirst(index)),
      );
      await send(
        organization,
        spans.filter((_, index) => !isFirst(index)),
      );
      const { result, share } = await longestPause(sweep);
      expect(result.superseded).toBeGreaterThan(0);
      expect(result.longTraces).toBe(0);
      expect(share).toBeLessThan(PAUSE_SHARE_MAX);
      if (live !== undefined) expect(await countLive(organization)).toBe(live);
      // Resolved calls stay resolved.
      expect((await sweep()).superseded).toBe(0);
    },
  );
});
