/** Requests keep a gap, and a provider that requires a pause gets it. */
import { afterEach, describe, expect, it } from 'vitest';
import { Pacer, retryAfterOf, spentWindowOf } from '../../../adapters/billing/pacer.js';
import { accessOf, connectorAt, startProvider, stopProviders } from './support/connections.js';

const NOW = BigInt(Date.UTC(2026, 9, 11, 12)) * 1_000n;
const headers = (entries: Record<string, string>) => new Headers(entries);

afterEach(stopProviders);

describe('the wait that an answer asks for', () => {
  it.each([
    ['seconds', { 'retry-after': '17' }, 17],
    ['an HTTP date', { 'retry-after': 'Sun, 11 Oct 2026 12:00:30 GMT' }, 30],
    [
      'an HTTP date, by the provider’s own clock',
      { 'retry-after': 'Sun, 11 Oct 2026 13:00:05 GMT', date: 'Sun, 11 Oct 2026 13:00:00 GMT' },
      5,
    ],
    ['milliseconds', { 'retry-after-ms': '1500', 'retry-after': '9' }, 2],
    ['the end of OpenAI’s window', { 'x-ratelimit-reset-requests': '1m6.2s' }, 67],
    ['the end of a short window', { 'x-ratelimit-reset-requests': '120ms' }, 1],
    ['the end of Anthropic’s window', { 'anthropic-ratelimit-requests-reset': '2026-10-11T12:00:42Z' }, 42],
    ['a time gone by', { 'retry-after': 'Sun, 11 Oct 2026 11:00:00 GMT' }, 1],
    ['more than an hour', { 'retry-after': '86400' }, 3_600],
    ['nothing', {}, 60],
    ['nonsense', { 'retry-after': 'soon' }, 60],
  ])('is read from %s', (_, entries, seconds) => {
    expect(retryAfterOf(headers(entries as Record<string, string>), NOW)).toBe(seconds);
  });

  it('is shown beforehand by an answer whose window is spent', () => {
    const reset = { 'anthropic-ratelimit-requests-reset': '2026-10-11T12:00:42Z' };
    expect(spentWindowOf(headers({ ...reset, 'anthropic-ratelimit-requests-remaining': '0' }), NOW)).toBe(42);
    expect(
      spentWindowOf(headers({ ...reset, 'anthropic-ratelimit-requests-remaining': '3' }), NOW),
    ).toBeUndefined();
    expect(spentWindowOf(headers({}), NOW)).toBeUndefined();
  });
});

describe('the pacer', () => {
  const signal = new AbortController().signal;

  it('keeps the gap between the requests of one connection, whatever sends them, and none between two connections', async () => {
    const started = performance.now();
    const pacer = new Pacer(40, () => performance.now());
    await Promise.all([pacer.turn('a', signal), pacer.turn('a', signal), pacer.turn('a', signal)]);
    expect(performance.now() - started).toBeGreaterThanOrEqual(78);
    // With a stopped clock a wait would be as long as the gap; this one would outlast the test.
    const standing = new Pacer(600_000, () => 0);
    await standing.turn('a', signal);
    await standing.turn('b', signal);
  });

  it('refuses a long wait at once, and states how long it is', async () => {
    const pacer = new Pacer(0, () => 1_000);
    pacer.block('a', 90);
    await expect(pacer.turn('a', signal)).rejects.toMatchObject({
      code: 'provider_rate_limited',
      retryAfterSeconds: 90,
    });
    await pacer.turn('b', signal);
  });

  it('drops a request whose caller aborted', async () => {
    const pacer = new Pacer(60_000, () => performance.now());
    const controller = new AbortController();
    await pacer.turn('a', controller.signal);
    const reason = new Error('cancelled');
    setTimeout(() => controller.abort(reason), 20);
    await expect(pacer.turn('a', controller.signal)).rejects.toBe(reason);
  });
});

describe('a connection', () => {
  it('sends nothing until the time that a 429 named is over, and another key may send meanwhile', async () => {
    const fake = await startProvider('anthropic');
    let nowMs = 0;
    const connector = connectorAt('anthropic', fake.origin, { nowMs: () => nowMs });
    fake.faults.inject({ kind: 'rate_limit', retryAfter: '30', requests: 1 });
    const limited = { code: 'provider_rate_limited', retryAfterSeconds: 30 };
    await expect(connector.identify(accessOf('anthropic'))).rejects.toMatchObject(limited);
    await expect(connector.identify(accessOf('anthropic'))).rejects.toMatchObject(limited);
    expect(fake.requests).toHaveLength(1);
    const other = accessOf('anthropic', {}, new AbortController().signal, 'sk-ant-admin01-another');
    await expect(connector.identify(other)).rejects.toMatchObject({ code: 'credentials_refused' });
    nowMs = 30_000;
    expect((await connector.identify(accessOf('anthropic'))).name).toBe('Loopback, Inc.');
  });

  it('waits by itself after the answer that spent the window', async () => {
    const fake = await startProvider('openai');
    fake.faults.inject({
      kind: 'headers',
      headers: { 'x-ratelimit-remaining-requests': '0', 'x-ratelimit-reset-requests': '20s' },
      requests: 1,
    });
    const connector = connectorAt('openai', fake.origin);
    await connector.identify(accessOf('openai'));
    await expect(connector.identify(accessOf('openai'))).rejects.toMatchObject({
      code: 'provider_rate_limited',
    });
    expect(fake.requests).toHaveLength(1);
  });
});
