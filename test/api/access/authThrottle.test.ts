import { randomBytes } from 'node:crypto';
import { afterEach, describe, expect, it } from 'vitest';
import {
  base62FromBytes,
  composeKey,
  KEY_ID_CHARS,
  KEY_SECRET_CHARS,
} from '../../../domain/access/keyRules.js';
import { type LimitedApi, policiesOf, startLimitedApi } from '../support/limits.js';
import { send } from '../support/requests.js';

const RATE = { quota: 20, windowSeconds: 60, burst: 20 };
const PATH = '/api/v1/events';

let api: LimitedApi;
afterEach(() => api.close());

const base62 = (count: number) => base62FromBytes(randomBytes(count * 3), count);
/** A well-formed key that does not exist. */
const guess = () => composeKey(base62(KEY_ID_CHARS), base62(KEY_SECRET_CHARS));
const statusOf = async (key: string | null, headers: Record<string, string> = {}) =>
  (await send(api, { path: PATH, key, headers })).status;

async function statuses(times: number, key: () => string | null, headers: Record<string, string> = {}) {
  const all: number[] = [];
  for (let index = 0; index < times; index += 1) all.push(await statusOf(key(), headers));
  return all;
}

describe('guessing keys', () => {
  it('from one address is answered 401 twenty times a minute, then 429 with the time to wait', async () => {
    api = await startLimitedApi({ failedAuthentication: RATE });
    expect(await statuses(20, guess)).toEqual(Array(20).fill(401));
    const refused = await send(api, { path: PATH, key: guess() });
    expect(refused.status).toBe(429);
    expect(refused.body).toMatchObject({
      code: 'rate_limited',
      'violated-policies': ['failed-authentication'],
    });
    expect(refused.headers['retry-after']).toBe('3');
    expect(policiesOf(refused).get('failed-authentication')).toMatchObject({ remaining: 0, resetSeconds: 3 });
    expect(refused.headers['www-authenticate']).toBeUndefined();
    await api.forward(3);
    expect(await statuses(2, guess)).toEqual([401, 429]);
  });

  it('counts a missing, a malformed, an unknown and a revoked key, and a wrong secret, all alike', async () => {
    api = await startLimitedApi({ failedAuthentication: { ...RATE, burst: 5 } });
    const { adminKey } = api;
    const wrongSecret = composeKey(adminKey.slice(8, 8 + KEY_ID_CHARS), base62(KEY_SECRET_CHARS));
    await api.database.superuser.query(`update api_keys set revoked_at = now() where role = 'ingest'`);
    for (const key of [null, 'tu_live_short', guess(), api.ingestKey, wrongSecret])
      expect(await statusOf(key)).toBe(401);
    const refusals = [];
    for (const key of [null, 'tu_live_short', guess(), api.ingestKey, wrongSecret]) {
      const { status, body } = await send(api, { path: PATH, key });
      refusals.push({ status, body: { ...body, instance: '', request_id: '' } });
    }
    // The answer is identical for every fault of the key.
    for (const refusal of refusals) expect(refusal).toEqual(refusals[0]);
    expect(refusals[0]?.status).toBe(429);
  });

  it('does not lock out callers that have a key behind the same address, and discloses no more than before', async () => {
    api = await startLimitedApi({ failedAuthentication: RATE });
    await statuses(40, guess);
    expect(await statusOf(api.adminKey)).toBe(200);
    const other = await api.addOrganization();
    expect(await statusOf(other.adminKey)).toBe(200);
    // A success is not counted and does not lift the limit.
    expect(await statusOf(guess())).toBe(429);
  });

  it('is counted in the metrics', async () => {
    api = await startLimitedApi({ failedAuthentication: { ...RATE, burst: 3 } });
    await statuses(3, guess);
    expect(await statusOf(guess())).toBe(429);
    const metrics = String((await send(api, { path: '/metrics', key: null })).bytes);
    expect(metrics).toMatch(/^trueup_failed_authentications_total\{outcome="refused"\} 3$/m);
    expect(metrics).toMatch(/^trueup_failed_authentications_total\{outcome="throttled"\} 1$/m);
  });

  it('is counted by the client’s address behind a trusted proxy, and by the proxy’s where none is trusted', async () => {
    api = await startLimitedApi(
      { failedAuthentication: { ...RATE, burst: 2 } },
      { trustedProxies: ['127.0.0.1'] },
    );
    const by = (address: string) => ({ 'x-forwarded-for': address });
    expect(await statuses(3, guess, by('198.51.100.7'))).toEqual([401, 401, 429]);
    expect(await statuses(3, guess, by('198.51.100.8'))).toEqual([401, 401, 429]);
    // A client's own header precedes the entry of the proxy.
    expect(await statusOf(guess(), by('203.0.113.5, 198.51.100.7'))).toBe(429);
    await api.close();
    api = await startLimitedApi({ failedAuthentication: { ...RATE, burst: 2 } });
    expect(await statusOf(guess(), by('198.51.100.7'))).toBe(401);
    expect(await statusOf(guess(), by('198.51.100.8'))).toBe(401);
    expect(await statusOf(guess(), by('198.51.100.9'))).toBe(429);
  });

  it('counts the addresses of an IPv6 network as one', async () => {
    api = await startLimitedApi(
      { failedAuthentication: { ...RATE, burst: 2 } },
      { trustedProxies: ['127.0.0.1'] },
    );
    const addresses = ['2001:db8:1:2::1', '2001:db8:1:2:ffff::9', '2001:db8:1:2:1234::1', '2001:db8:1:3::1'];
    const found = [];
    for (const address of addresses) found.push(await statusOf(guess(), { 'x-forwarded-for': address }));
    expect(found).toEqual([401, 401, 429, 401]);
  });

  it('writes nothing into the database', async () => {
    api = await startLimitedApi({ failedAuthentication: RATE });
    await statuses(30, guess);
    const { rows } = await api.database.superuser.query('select * from rate_buckets');
    expect(rows).toEqual([]);
  });
});
