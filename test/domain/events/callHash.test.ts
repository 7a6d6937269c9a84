import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { apiKeyHash, eventId } from '../../../domain/events/resolveCalls.js';
import { findMicrosOfUuid } from '../../../domain/ids.js';

const sha = (text: string) => createHash('sha256').update(text).digest('hex').slice(0, 16);
const KEY = 'key_0123456789';
const text = fc.string({ unit: 'grapheme-ascii', maxLength: 40 });

describe('api_key_hash', () => {
  it('is the first 16 hex digits of sha256 over key id and request id', () => {
    fc.assert(
      fc.property(text, text, (requestId, sessionId) => {
        const call = { requestId, sessionId, model: 'm', hashTimestamp: 't', status: 'ok' } as const;
        expect(apiKeyHash(KEY, call)).toBe(sha(`${KEY}:${requestId}`));
      }),
    );
  });

  it('is made of session, model and time where there is no request id', () => {
    const call = {
      requestId: null,
      sessionId: 's',
      model: 'gpt-4o',
      hashTimestamp: '1790000000000000001',
      status: 'ok',
    } as const;
    expect(apiKeyHash(KEY, call)).toBe(sha(`${KEY}:s:gpt-4o:1790000000000000001`));
    expect(apiKeyHash(KEY, { ...call, hashTimestamp: '1790000000000000002' })).not.toBe(
      apiKeyHash(KEY, call),
    );
  });

  it('of a blocked call is another one than that of the same request let through, however that ends', () => {
    const call = { requestId: 'r1', sessionId: 's', model: 'm', hashTimestamp: 't' } as const;
    const made = (['ok', 'error', 'cancelled'] as const).map((status) =>
      apiKeyHash(KEY, { ...call, status }),
    );
    expect(new Set(made)).toEqual(new Set([sha(`${KEY}:r1`)]));
    expect(apiKeyHash(KEY, { ...call, status: 'blocked' })).toBe(sha(`blocked\u001f${KEY}:r1`));
  });
});

describe('the id of an event', () => {
  const call = { provider: 'openai', model: 'gpt-4o', startMicros: 1_790_000_000_123_456n } as const;

  it('carries no time after the year 9999', () => {
    expect(findMicrosOfUuid('ffffffff-ffff-7000-8000-000000000000')).toBeUndefined();
  });

  it('carries the time of its call to the microsecond, and is the same on every repeat', () => {
    fc.assert(
      fc.property(fc.bigInt(1_577_836_800_000_000n, 4_102_444_800_000_000n), (startMicros) => {
        const id = eventId({ ...call, startMicros }, 'abcdef0123456789');
        expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
        expect(findMicrosOfUuid(id)).toBe(startMicros);
        expect(eventId({ ...call, startMicros }, 'abcdef0123456789')).toBe(id);
      }),
    );
  });

  it('differs with each part of what makes an event unique', () => {
    const ids = [
      eventId(call, 'a'),
      eventId(call, 'b'),
      eventId({ ...call, provider: 'azure_openai' }, 'a'),
      eventId({ ...call, model: 'gpt-4o-mini' }, 'a'),
      eventId({ ...call, startMicros: call.startMicros + 1n }, 'a'),
    ];
    expect(new Set(ids).size).toBe(ids.length);
  });
});
