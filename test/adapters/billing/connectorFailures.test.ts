/** Each failure of a provider has its code and a sentence with the remedy, and none contains the key. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import type { ConnectorOptions } from '../../../adapters/billing/connector.js';
import { DomainError, type ErrorCode } from '../../../domain/errors.js';
import type { Fault } from '../../fakes/billing/faults.js';
import {
  ADMIN_KEYS,
  accessOf,
  connectorAt,
  PROVIDER_NAMES,
  type ProviderName,
  startProvider,
  stopProviders,
} from './support/connections.js';
import { NOW_MICROS } from './support/truths.js';

const WINDOW = { fromDay: '2026-09-01', toDay: '2026-10-11' };

afterEach(stopProviders);

/** The failure of one page; none of its texts may show the key. */
async function failureOf(work: Promise<unknown>, adminKey: string): Promise<DomainError> {
  const error = await work.then(
    () => undefined,
    (failure: unknown) => failure,
  );
  expect(error).toBeInstanceOf(DomainError);
  const failure = error as DomainError;
  const shown = `${failure.message} ${failure.stack} ${JSON.stringify(failure)} ${String(failure.cause)}`;
  expect(shown).not.toContain(adminKey);
  expect(shown).not.toContain(adminKey.slice(-4));
  return failure;
}

async function failing(
  provider: ProviderName,
  fault: Fault,
  overrides: Partial<ConnectorOptions> = {},
): Promise<DomainError> {
  const fake = await startProvider(provider);
  fake.faults.inject(fault);
  const connector = connectorAt(provider, fake.origin, overrides);
  const [chunk] = connector.plan(WINDOW, NOW_MICROS);
  if (!chunk) throw new Error('the plan is empty');
  return failureOf(connector.fetchPage(accessOf(provider), chunk, null), ADMIN_KEYS[provider]);
}

const CASES: [string, Fault, ErrorCode, RegExp][] = [
  ['an outage', { kind: 'outage', status: 503 }, 'provider_unavailable', /answered 503 for cost/],
  ['a crash', { kind: 'outage', status: 500 }, 'provider_unavailable', /500/],
  ['a report that is gone for a day', { kind: 'outage', status: 404 }, 'provider_unavailable', /404/],
  ['a key without the permission', { kind: 'denied' }, 'credentials_refused', /create an admin key/],
  ['a limit of requests', { kind: 'rate_limit', retryAfter: '7' }, 'provider_rate_limited', /7 s/],
  ['a body that breaks off', { kind: 'cut_body' }, 'provider_unavailable', /connection/],
  ['no JSON', { kind: 'wrong_shape', body: '<html>' }, 'provider_answer_unreadable', /not JSON/],
  [
    'another shape',
    { kind: 'wrong_shape', body: '{"items":[]}' },
    'provider_answer_unreadable',
    /data is not/,
  ],
  [
    'a bucket without times',
    { kind: 'wrong_shape', body: '{"data":[{"results":[]}],"has_more":false}' },
    'provider_answer_unreadable',
    /data\.0/,
  ],
  [
    'more pages without saying where',
    { kind: 'wrong_shape', body: '{"data":[],"has_more":true,"next_page":null}' },
    'provider_paging_changed',
    /no next page/,
  ],
  [
    'a redirect',
    { kind: 'redirect', location: 'http://127.0.0.1:9/' },
    'provider_answer_unreadable',
    /_ADMIN_BASE_URL/,
  ],
  [
    'a page that never ends',
    { kind: 'large_body', bytes: 2_000_000 },
    'provider_answer_unreadable',
    /1000000 bytes/,
  ],
];

describe.each(PROVIDER_NAMES)('a failure of %s', (provider) => {
  it.each(CASES)('%s has its code and sentence', async (_, fault, code, sentence) => {
    const failure = await failing(provider, fault, { pageBytesMax: 1_000_000 });
    expect(failure.code).toBe(code);
    expect(failure.message).toMatch(sentence);
    if (code === 'provider_unavailable') expect(failure.retryAfterSeconds).toBeGreaterThan(0);
  });

  it('that is silence ends at the deadline', async () => {
    const failure = await failing(provider, { kind: 'hang' }, { deadlineMs: 80 });
    expect(failure.code).toBe('provider_unavailable');
    expect(failure.message).toContain('did not answer in time');
  });

  it('whose page token is expired requests the chunk again', async () => {
    const fake = await startProvider(provider);
    fake.limitPages(2);
    const connector = connectorAt(provider, fake.origin);
    const [chunk] = connector.plan(WINDOW, NOW_MICROS);
    if (!chunk) throw new Error('the plan is empty');
    const { nextCursor } = await connector.fetchPage(accessOf(provider), chunk, null);
    fake.invalidatePages();
    const failure = await failureOf(
      connector.fetchPage(accessOf(provider), chunk, nextCursor),
      ADMIN_KEYS[provider],
    );
    expect(failure.code).toBe('provider_paging_changed');
    expect((await connector.fetchPage(accessOf(provider), chunk, null)).nextCursor).not.toBe(nextCursor);
  });

  it('that names the page in hand as the next one is not followed for ever', async () => {
    const body = '{"data":[],"has_more":true,"next_page":"again"}';
    const repeated = await failingWithCursor(provider, body, 'again');
    expect(repeated.code).toBe('provider_paging_changed');
  });

  it('of the network is an outage and names the system’s error', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    await new Promise((resolve) => server.close(resolve));
    const connector = connectorAt(provider, `http://127.0.0.1:${port}`);
    const failure = await failureOf(connector.identify(accessOf(provider)), ADMIN_KEYS[provider]);
    expect(failure.code).toBe('provider_unavailable');
    expect(failure.message).toContain('ECONNREFUSED');
  });

  it('that quotes the key is not passed on', async () => {
    const fake = await startProvider(provider);
    const connector = connectorAt(provider, fake.origin);
    const wrong = `${ADMIN_KEYS[provider].slice(0, 12)}Wr0ngWr0ng0987`;
    const failure = await failureOf(
      connector.identify(accessOf(provider, {}, new AbortController().signal, wrong)),
      wrong,
    );
    expect(failure.code).toBe('credentials_refused');
    expect(failure.message).toContain('the key is not valid');
  });

  it.each([
    ['a line break', 'sk-admin-abc\ndef'],
    ['a letter outside ASCII', 'sk-admin-ü0123456789'],
    ['nothing', ''],
  ])('is reported before anything is sent when the key holds %s', async (_, adminKey) => {
    const fake = await startProvider(provider);
    const connector = connectorAt(provider, fake.origin);
    const access = accessOf(provider, {}, new AbortController().signal, adminKey);
    const failure = await connector.identify(access).catch((error: unknown) => error);
    expect((failure as DomainError).code).toBe('credentials_refused');
    if (adminKey !== '') expect(String(failure)).not.toContain(adminKey);
    expect(fake.requests).toHaveLength(0);
  });

  it('names the other kind of key', async () => {
    const fake = await startProvider(provider);
    const connector = connectorAt(provider, fake.origin);
    const access = accessOf(provider, {}, new AbortController().signal, 'sk-proj-inference-0123');
    const failure = (await connector.identify(access).catch((error: unknown) => error)) as DomainError;
    expect(failure.message).toMatch(/does not begin with sk-a/);
    if (provider === 'openai') expect(failure.message).toContain('api.usage.read');
  });

  it('is none when the caller aborts: the abort reason is thrown', async () => {
    const fake = await startProvider(provider);
    fake.faults.inject({ kind: 'hang' });
    const controller = new AbortController();
    const reason = new Error('the activity was cancelled');
    const work = connectorAt(provider, fake.origin).identify(accessOf(provider, {}, controller.signal));
    setTimeout(() => controller.abort(reason), 30);
    await expect(work).rejects.toBe(reason);
  });
});

async function failingWithCursor(provider: ProviderName, body: string, cursor: string): Promise<DomainError> {
  const server: Server = createServer((_request, response) => response.end(body));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  try {
    const connector = connectorAt(provider, `http://127.0.0.1:${port}`);
    const [chunk] = connector.plan(WINDOW, NOW_MICROS);
    if (!chunk) throw new Error('the plan is empty');
    return await failureOf(connector.fetchPage(accessOf(provider), chunk, cursor), ADMIN_KEYS[provider]);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}
