import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { TestApi } from '../support/api.js';
import { makeTestFolder } from '../support/testFolder.js';
import { runTrueup } from '../support/trueup.js';
import { startWorkingApi } from '../support/workingApi.js';

let api: TestApi;
let folder: string;

beforeAll(async () => {
  api = await startWorkingApi();
  folder = makeTestFolder('usage-export');
}, 120_000);
afterAll(() => api?.close());

const DAY = Date.UTC(2025, 2, 4) / 1_000;
const USAGE = {
  object: 'page',
  data: [
    {
      object: 'bucket',
      start_time: DAY,
      end_time: DAY + 86_400,
      results: [
        {
          object: 'organization.usage.completions.result',
          input_tokens: 120_000,
          output_tokens: 30_000,
          input_cached_tokens: 100_000,
          input_audio_tokens: 0,
          output_audio_tokens: 0,
          num_model_requests: 42,
          project_id: null,
          user_id: null,
          api_key_id: null,
          model: 'gpt-4o-2024-08-06',
          batch: false,
          service_tier: 'default',
        },
      ],
    },
  ],
  has_more: false,
  next_page: null,
};

async function importFile(content: string, key: string) {
  const file = join(folder, 'usage.json');
  writeFileSync(file, content);
  const environment = { TRUEUP_URL: api.baseUrl, TRUEUP_API_KEY: key, XDG_CACHE_HOME: folder };
  return runTrueup(['import', 'history', file, '--from', 'openai', '--account', 'org-loop'], { environment });
}

describe('import history --from openai', () => {
  it('stores sums as what the provider counted, and never as calls', { timeout: 60_000 }, async () => {
    const { exit, output } = await importFile(JSON.stringify(USAGE), api.adminKey);
    expect(output).toMatch(/^imp_\w+: \d+ rows of usage, 2025-03-04 to 2025-03-04\. They are sums/);
    expect(exit).toBe(0);
    expect((await api.get('/api/v1/events?since=2025-01-01')).body.events).toEqual([]);
    const again = await importFile(JSON.stringify(USAGE), api.adminKey);
    expect(again.output).toBe(output);
  });

  it('names the remedy for a file that is no answer of the API, and for a key without the right', async () => {
    await expect(importFile('start_time,end_time\n', api.adminKey)).rejects.toThrow(
      /line 1, column 1: not JSON\. Save the answers of GET \/v1\/organization\/usage\/completions/,
    );
    await expect(importFile(JSON.stringify(USAGE), api.ingestKey)).rejects.toThrow(
      /^The service refused .*usage\.json: admin role required\./,
    );
  });
});
