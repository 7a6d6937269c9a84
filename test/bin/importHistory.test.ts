import { spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PROJECT_ROOT } from '../../platform/projectRoot.js';
import { startTestApi, type TestApi } from '../support/api.js';
import { makeTestFolder } from '../support/testFolder.js';
import { runTrueup } from '../support/trueup.js';

let api: TestApi;
let folder: string;

beforeAll(async () => {
  api = await startTestApi();
  folder = makeTestFolder('history');
});
afterAll(() => api?.close());

const environmentOf = (key = api.ingestKey) => ({
  TRUEUP_URL: api.baseUrl,
  TRUEUP_API_KEY: key,
  XDG_CACHE_HOME: join(folder, 'cache'),
});

function fileOf(name: string, content: string | Buffer): string {
  const file = join(folder, name);
  writeFileSync(file, content);
  return file;
}

const jsonLines = (rows: readonly object[]) => rows.map((row) => JSON.stringify(row)).join('\n');

function csvOf(rows: readonly Record<string, unknown>[]): string {
  const names = Object.keys(rows[0] ?? {});
  const cell = (value: unknown) => {
    const text =
      value === null || value === undefined
        ? ''
        : typeof value === 'object'
          ? JSON.stringify(value)
          : String(value);
    return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [names.join(','), ...rows.map((row) => names.map((name) => cell(row[name])).join(','))].join('\n');
}

async function importFile(file: string, from: string, ...more: string[]) {
  return runTrueup(['import', 'history', file, '--from', from, ...more], { environment: environmentOf() });
}

/** Stored calls of a session, the newest first. */
const callsOf = async (session: string) =>
  (await api.get(`/api/v1/events?session_id=${encodeURIComponent(session)}`)).body.events;

const LANGFUSE = {
  id: 'obs-1',
  trace_id: 'lf-session',
  type: 'GENERATION',
  start_time: '2025-03-01 12:00:00.250000',
  end_time: '2025-03-01 12:00:01.500000',
  environment: 'production',
  level: 'DEFAULT',
  provided_model_name: 'gpt-4o-mini',
  usage_details: { input: 200, input_cached_tokens: 1000, output: 300, total: 1500 },
  cost_details: { input: 0.001, output: 0.002, total: 0.003 },
  user_id: 'ada',
  metadata: { team_id: 'search', feature: 'answers' },
  input: [{ role: 'user', content: 'a secret question' }],
};

describe('import history --from langfuse', () => {
  const rows = [
    LANGFUSE,
    { ...LANGFUSE, id: 'obs-2', type: 'SPAN' },
    { ...LANGFUSE, id: 'obs-3', start_time: '' },
    { ...LANGFUSE, id: 'obs-4', provided_model_name: 'house-model-7' },
    { ...LANGFUSE, id: 'obs-5', level: 'ERROR', usage_details: {}, cost_details: {} },
    { ...LANGFUSE, id: 'obs-6', usage_details: { input: -1 } },
  ];

  it('stores calls with their times, tokens, costs and labels, and reports every other row with its line', async () => {
    const { exit, output } = await importFile(fileOf('observations.jsonl', jsonLines(rows)), 'langfuse');
    expect(output).toMatch(/6 rows, 2025-03-01 to 2025-03-01\n\s+2 {2}calls stored\n\s+0 {2}repeats/);
    expect(output).toMatch(/1 {2}rows that are no calls\n\s+1 {2}an observation of type SPAN, .* \(line 2\)/);
    expect(output).toMatch(/3 {2}rows that cannot be read/);
    expect(output).toContain('start_time is missing: export the file with this column (line 3)');
    expect(output).toContain('the provider of house-model-7 is unknown: name it with --provider (line 4)');
    expect(output).toMatch(/invalid_number: usage.input: -1 is not a whole number .* \(line 6\)/);
    expect(exit).toBe(1);
    const events = await callsOf('lf-session');
    expect(events).toHaveLength(2);
    const call = events.find((one: { status: string }) => one.status === 'ok');
    expect(call).toMatchObject({
      timestamp: '2025-03-01T12:00:00.250000Z',
      provider: 'openai',
      model: 'gpt-4o-mini',
      duration_ms: 1_250,
      input_tokens: 200,
      cache_read: 1_000,
      output_tokens: 300,
      cost_usd: 0.003,
      cost_source: 'reported',
      team_id: 'search',
      feature: 'answers',
      user_id: 'ada',
      environment: 'production',
    });
    expect(call.computed_cost_usd).toBeGreaterThan(0);
    expect(JSON.stringify(events)).not.toContain('secret question');
  });

  it('knows the same calls again in each format, and takes the provider of --provider', async () => {
    const answer = {
      data: rows.slice(0, 2).map(({ provided_model_name: model, ...row }) => ({ ...camelCase(row), model })),
    };
    for (const [name, content] of [
      ['list.json', JSON.stringify(rows.slice(0, 2), null, 2)],
      ['answer.json', JSON.stringify(answer)],
      ['observations.csv', csvOf(rows.slice(0, 2))],
      ['observations.jsonl.gz', gzipSync(jsonLines(rows.slice(0, 2)))],
    ] as const) {
      const { exit, output } = await importFile(fileOf(name, content), 'langfuse');
      expect(output, name).toMatch(/2 rows.*\n\s+0 {2}calls stored\n\s+1 {2}repeats/);
      expect(exit, name).toBe(0);
    }
    const named = await importFile(
      fileOf('named.jsonl', jsonLines([rows[3] as object])),
      'langfuse',
      '--provider',
      'mistral',
    );
    expect(named.output).toMatch(/1 {2}calls stored/);
  });

  it('reads objects and numbers that an export has as texts', async () => {
    const row = {
      ...LANGFUSE,
      id: 'obs-text',
      trace_id: 'lf-text',
      provided_model_name: 'house-model-8',
      usage_details: JSON.stringify({ input: '20', output: '30' }),
      cost_details: { total: '0.000000123' },
      metadata: JSON.stringify({ attributes: JSON.stringify({ 'gen_ai.system': 'mistral_ai' }) }),
    };
    expect((await importFile(fileOf('texts.jsonl', jsonLines([row])), 'langfuse')).exit).toBe(0);
    expect(await callsOf('lf-text')).toMatchObject([
      { provider: 'mistral', input_tokens: 20, output_tokens: 30, cost_usd: 0.000000123 },
    ]);
  });

  it('names line, column and remedy where the file is broken, and keeps what precedes', async () => {
    const text = `${JSON.stringify({ ...LANGFUSE, id: 'obs-7' })}\n{"id": "obs-8", "type": GENERATION}\n`;
    const file = fileOf('broken.jsonl', text);
    await expect(importFile(file, 'langfuse')).rejects.toThrow(
      /broken\.jsonl: line 2, column \d+: not JSON from here on: export the file again\. The 1 rows before it are imported\./,
    );
    const open = fileOf('open.json', `[${JSON.stringify(LANGFUSE).slice(0, -5)}`);
    await expect(importFile(open, 'langfuse')).rejects.toThrow(
      /line 1, column 1: the file ends inside this record/,
    );
    const cells = fileOf('cells.csv', 'id,type\na,GENERATION,b\n');
    await expect(importFile(cells, 'langfuse')).rejects.toThrow(
      /line 2, column 3: the line has 3 cells, the header has 2/,
    );
  });
});

const camelCase = (row: object) =>
  Object.fromEntries(
    Object.entries(row).map(([name, value]) => [
      name.replace(/_(\w)/g, (_, letter) => letter.toUpperCase()),
      value,
    ]),
  );

const SPEND = {
  request_id: 'chatcmpl-history-1',
  call_type: 'acompletion',
  spend: 0.0125,
  total_tokens: 1500,
  prompt_tokens: 1200,
  completion_tokens: 300,
  startTime: '2025-03-02 08:00:00.001',
  endTime: '2025-03-02 08:00:02.001',
  model: 'gpt-4o',
  custom_llm_provider: 'openai',
  api_base: 'https://api.openai.com',
  user: 'u-1',
  team_id: 'growth',
  end_user: '',
  cache_hit: 'False',
  session_id: 'spend-session',
  status: 'success',
  metadata: { additional_usage_values: { prompt_tokens_details: { cached_tokens: 1000 } } },
};

describe('import history --from litellm', () => {
  const rows = [
    SPEND,
    { ...SPEND, request_id: 'cached', cache_hit: 'True' },
    { ...SPEND, request_id: 'batch', call_type: 'aretrieve_batch' },
    { ...SPEND, request_id: 'tool', call_type: 'call_mcp_tool' },
    {
      ...SPEND,
      request_id: 'failed',
      status: 'failure',
      spend: 0,
      prompt_tokens: 0,
      completion_tokens: 0,
      total_tokens: 0,
      metadata: {},
    },
    {
      ...SPEND,
      request_id: 'msg_free',
      model: 'anthropic/claude-sonnet-4-5',
      custom_llm_provider: '',
      api_base: '',
      spend: 0,
    },
  ];

  it.each(['csv', 'jsonl'])('stores spend logs as %s', async (format) => {
    const text = format === 'csv' ? csvOf(rows) : jsonLines(rows);
    const { exit, output } = await importFile(fileOf(`spend.${format}`, text), 'litellm');
    expect(output).toMatch(format === 'csv' ? /3 {2}calls stored/ : /0 {2}calls stored\n\s+3 {2}repeats/);
    expect(output).toMatch(/1 {2}answered from the proxy’s cache: no provider was called \(line \d+\)/);
    expect(output).toContain('the sums of a batch, which are no calls');
    expect(output).toContain('a call of a tool, and of no model');
    expect(exit).toBe(0);
    const events = await callsOf('spend-session');
    expect(events).toHaveLength(3);
    const of = (id: string) => events.find((one: { request_id: string }) => one.request_id === id);
    expect(of('chatcmpl-history-1')).toMatchObject({
      input_tokens: 200,
      cache_read: 1_000,
      output_tokens: 300,
      cost_usd: 0.0125,
      cost_source: 'reported',
      duration_ms: 2_000,
      user_id: 'u-1',
      team_id: 'growth',
      billed_by: 'openai',
      timestamp: '2025-03-02T08:00:00.001000Z',
    });
    expect(of('failed')).toMatchObject({ status: 'error', cost_usd: 0 });
    // A spend of 0 for tokens means that the proxy knew no price.
    expect(of('msg_free')).toMatchObject({
      provider: 'anthropic',
      model: 'claude-sonnet-4-5',
      cost_source: 'computed',
    });
    expect(of('msg_free').cost_usd).toBeGreaterThan(0);
  });
});

const HELICONE = {
  request_id: 'a3b1',
  response_id: 'b4c2',
  request_created_at: '2025-03-03T09:00:00.000Z',
  response_status: 200,
  request_model: 'claude-sonnet-4-5',
  response_model: 'claude-sonnet-4-5-20250929',
  provider: 'ANTHROPIC',
  target_url: 'https://api.anthropic.com/v1/messages',
  delay_ms: 900,
  prompt_tokens: 50,
  prompt_cache_read_tokens: 1000,
  prompt_cache_write_tokens: 200,
  completion_tokens: 300,
  costUSD: 0.01,
  cache_reference_id: '00000000-0000-0000-0000-000000000000',
  request_user_id: 'u-9',
  properties: { Team: 'ops', 'Helicone-Session-Id': 'hel-session' },
};

describe('import history --from helicone', () => {
  it.each(['jsonl', 'csv'])('stores requests as %s', async (format) => {
    const rows = [
      HELICONE,
      { ...HELICONE, request_id: 'a3b2', cache_reference_id: '7d1f0b7e-0000-4000-8000-000000000001' },
      { ...HELICONE, request_id: 'a3b3', response_status: 529 },
      { ...HELICONE, request_id: 'a3b4', response_status: -3 },
    ];
    const { exit, output } = await importFile(
      fileOf(`helicone.${format}`, format === 'csv' ? csvOf(rows) : jsonLines(rows)),
      'helicone',
    );
    expect(output).toMatch(/answered from Helicone’s cache/);
    expect(exit).toBe(0);
    const events = await callsOf('hel-session');
    expect(events.map((one: { status: string }) => one.status).sort()).toEqual(['cancelled', 'error', 'ok']);
    expect(events.find((one: { status: string }) => one.status === 'ok')).toMatchObject({
      provider: 'anthropic',
      model: 'claude-sonnet-4-5-20250929',
      input_tokens: 50,
      cache_read: 1_000,
      cache_creation: 200,
      output_tokens: 300,
      duration_ms: 900,
      http_status: 200,
      cost_usd: 0.01,
      team_id: 'ops',
      user_id: 'u-9',
      billed_by: 'anthropic',
    });
  });
});

describe('import history', () => {
  it('goes on after a kill -9, and counts every call once', { timeout: 120_000 }, async () => {
    const calls = Array.from({ length: 15_000 }, (_, at) => ({
      ...SPEND,
      request_id: `kill-${at}`,
      session_id: 'killed',
      startTime: new Date(Date.UTC(2025, 4, 1) + at * 1_000).toISOString(),
      endTime: null,
    }));
    const file = fileOf('killed.jsonl', jsonLines(calls));
    const cache = join(folder, 'killed-cache');
    const environment = { ...environmentOf(), XDG_CACHE_HOME: cache };
    const args = ['import', 'history', file, '--from', 'litellm'];
    const child = spawn(process.execPath, ['--import', 'tsx', join(PROJECT_ROOT, 'bin/trueup.ts'), ...args], {
      cwd: PROJECT_ROOT,
      env: { PATH: process.env.PATH ?? '', ...environment },
      stdio: 'ignore',
    });
    const ended = new Promise((resolve) => child.once('exit', resolve));
    const rowsDone = () => {
      const states = join(cache, 'trueup', 'history');
      const [name] = existsSync(states) ? readdirSync(states).filter((one) => one.endsWith('.json')) : [];
      return name === undefined ? 0 : JSON.parse(readFileSync(join(states, name), 'utf8')).rows;
    };
    while (rowsDone() === 0 && child.exitCode === null)
      await new Promise((resolve) => setTimeout(resolve, 5));
    child.kill('SIGKILL');
    await ended;
    const before = rowsDone();
    expect(before).toBeGreaterThan(0);
    expect(before).toBeLessThan(calls.length);
    const { exit, output } = await runTrueup(args, { environment });
    expect(exit).toBe(0);
    expect(output).toContain('15,000 rows');
    const summary = await api.get('/api/v1/usage/summary?from=2025-05-01&to=2025-05-02&group_by=model');
    expect(summary.body.total_output_tokens).toBe(15_000 * 300);
    expect(summary.body.total_cost_usd).toBe(15_000 * 0.0125);
    const again = await runTrueup(args, { environment });
    expect(again.output).toMatch(/ 0 {2}calls stored\n\s+15,000 {2}repeats/);
  });

  it('refuses another key for the same file, since its calls would count twice', async () => {
    const file = fileOf('keys.jsonl', jsonLines([{ ...SPEND, request_id: 'keys' }]));
    await importFile(file, 'litellm');
    const environment = environmentOf(await api.addKey(api.orgId, 'ingest'));
    await expect(
      runTrueup(['import', 'history', file, '--from', 'litellm'], { environment }),
    ).rejects.toThrow(/was imported with the key .* would count twice: use that key/);
  });

  it('names the remedy without a key, without a service, and for a key that may not send calls', async () => {
    const file = fileOf('refused.jsonl', jsonLines([SPEND]));
    const args = ['import', 'history', file, '--from', 'litellm'];
    await expect(runTrueup(args, { environment: {} })).rejects.toThrow(
      /^TRUEUP_API_KEY is not set: import history needs/,
    );
    const auditor = environmentOf(await api.addKey(api.orgId, 'auditor'));
    await expect(
      runTrueup(args, { environment: { ...auditor, XDG_CACHE_HOME: join(folder, 'auditor') } }),
    ).rejects.toThrow(
      /^The service refused the calls of line 1 and after: the key lacks the scope ingest\. Run the same command again/,
    );
    await expect(importFile(join(folder, 'none.csv'), 'litellm')).rejects.toThrow(
      /is no file that can be read/,
    );
    await expect(importFile(fileOf('empty.csv', ''), 'litellm')).rejects.toThrow(/is empty/);
  });
});
