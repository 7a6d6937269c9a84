/** The usage reports beside completions, read as the providers write them. */
import { describe, expect, it } from 'vitest';
import { readBillingFile } from '../../../adapters/billing/file.js';
import type { BilledRow } from '../../../domain/billing/billedRow.js';
import { pageKindOf } from '../../../domain/billing/pageRow.js';

async function read(
  provider: 'openai' | 'anthropic',
  page: object,
  expected?: ReturnType<typeof pageKindOf>,
) {
  async function* bytes() {
    yield Buffer.from(JSON.stringify(page));
  }
  const options = { provider, format: undefined, fxRate: undefined, skip: new Set<number>() };
  const reader = readBillingFile(bytes(), { ...options, ...(expected ? { expected } : {}) });
  const rows: BilledRow[] = [];
  for (;;) {
    const next = await reader.next();
    if (next.done) return { rows, summary: next.value };
    rows.push(...next.value.map(({ row }) => row));
  }
}

const openaiPage = (...results: object[]) => ({
  object: 'page',
  data: [{ object: 'bucket', start_time: 1_788_220_800, end_time: 1_788_224_400, results }],
  has_more: false,
  next_page: null,
});
const one = (quantity: bigint) => quantity * 10n ** 12n;
const classes = (rows: BilledRow[]) =>
  Object.fromEntries(rows.map((row) => [row.tokenClass, Number((row.quantity ?? 0n) / 10n ** 12n)]));

describe('OpenAI’s tool reports', () => {
  it.each([
    ['web_searches', 'web_search_calls'],
    ['file_searches', 'file_search_calls'],
  ])(
    'name their results %s and are the report %s; the requests around a search are not counted again',
    async (name, report) => {
      const result = { object: `organization.usage.${name}.result`, num_requests: 4, num_model_requests: 2 };
      const { rows, summary } = await read('openai', openaiPage(result));
      expect(rows).toHaveLength(1);
      expect(rows[0]).toMatchObject({
        report,
        tokenClass: 'other',
        quantity: one(4n),
        quantityUnit: 'calls',
      });
      expect(summary.covered[0]).toMatchObject({ report, feed: 'usage' });
    },
  );

  it('of embeddings and moderations count input tokens and requests', async () => {
    for (const report of ['embeddings', 'moderations']) {
      const result = {
        object: `organization.usage.${report}.result`,
        input_tokens: 16,
        num_model_requests: 2,
      };
      expect(classes((await read('openai', openaiPage(result))).rows)).toEqual({ input: 16, requests: 2 });
    }
  });
});

describe('audio input of completions', () => {
  const completions = (counts: object) => ({ object: 'organization.usage.completions.result', ...counts });

  it('is what did not come from the cache, as the current reference defines it', async () => {
    const { rows } = await read(
      'openai',
      openaiPage(
        completions({
          input_tokens: 100,
          input_cached_tokens: 30,
          input_cached_audio_tokens: 20,
          input_uncached_tokens: 70,
          input_text_tokens: 40,
          input_audio_tokens: 25,
          input_image_tokens: 5,
        }),
      ),
    );
    expect(classes(rows)).toEqual({ input: 45, cache_read: 30, input_audio: 25 });
  });

  it('with cached audio inside, as pages were before, is read by what the parts add up to', async () => {
    const parts = { input_tokens: 100, input_cached_tokens: 30, input_cached_audio_tokens: 20 };
    const byParts = completions({ ...parts, input_text_tokens: 45, input_audio_tokens: 45 });
    expect(classes((await read('openai', openaiPage(byParts))).rows)).toEqual({
      input: 45,
      cache_read: 30,
      input_audio: 25,
    });
    const bySize = completions({ ...parts, input_audio_tokens: 85 });
    expect(classes((await read('openai', openaiPage(bySize))).rows)).toMatchObject({
      input: 5,
      input_audio: 65,
    });
  });
});

describe('Anthropic’s usage of messages', () => {
  it('has no key in the Workbench, no workspace in the default one, tiers of its own and web searches', async () => {
    const result = {
      uncached_input_tokens: 100,
      cache_creation: { ephemeral_1h_input_tokens: 10, ephemeral_5m_input_tokens: 5 },
      cache_read_input_tokens: 20,
      output_tokens: 30,
      server_tool_use: { web_search_requests: 2 },
      api_key_id: null,
      workspace_id: null,
      model: 'claude-opus-5',
      service_tier: 'priority_on_demand',
      context_window: null,
      inference_geo: 'us',
      account_id: 'user_1',
      service_account_id: null,
    };
    const page = {
      data: [{ starting_at: '2026-09-01T03:00:00Z', ending_at: '2026-09-01T04:00:00Z', results: [result] }],
      has_more: false,
      next_page: null,
    };
    const { rows } = await read('anthropic', page);
    expect(classes(rows)).toEqual({
      input: 100,
      cache_read: 20,
      cache_write_5m: 5,
      cache_write_1h: 10,
      output: 30,
      other: 2,
    });
    for (const row of rows) {
      expect(row).toMatchObject({
        project: null,
        apiKey: null,
        serviceTier: 'priority_on_demand',
        isBatch: false,
        longContext: null,
        region: 'us',
      });
    }
  });

  it.each([
    ['standard', 'standard', false],
    ['batch', 'standard', true],
    ['priority', 'priority', false],
    ['priority_on_demand', 'priority_on_demand', false],
    ['flex', 'flex', false],
    ['flex_discount', 'flex_discount', false],
  ])('names the tier %s', async (service_tier, serviceTier, isBatch) => {
    const page = {
      data: [
        {
          starting_at: '2026-09-01T03:00:00Z',
          ending_at: '2026-09-01T04:00:00Z',
          results: [{ uncached_input_tokens: 1, model: 'claude-opus-5', service_tier }],
        },
      ],
      has_more: false,
      next_page: null,
    };
    const { rows } = await read('anthropic', page);
    expect(rows).toEqual([expect.objectContaining({ serviceTier, isBatch, tokenClass: 'input' })]);
  });
});

describe('a page that was asked for', () => {
  it('covers its days under its report without any result', async () => {
    const { rows, summary } = await read('openai', openaiPage(), pageKindOf('openai', 'usage', 'images'));
    expect(rows).toEqual([]);
    expect(summary).toMatchObject({
      format: 'openai_pages',
      covered: [{ day: '2026-09-01', feed: 'usage', report: 'images', account: null }],
    });
  });

  it('is refused when its results are of another report', async () => {
    const result = { object: 'organization.usage.embeddings.result', input_tokens: 1 };
    await expect(
      read('openai', openaiPage(result), pageKindOf('openai', 'usage', 'images')),
    ).rejects.toMatchObject({ code: 'invalid_billing_file' });
  });
});
