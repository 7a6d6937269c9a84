import { describe, expect, it } from 'vitest';
import { CLIENTS, findClient, isBelow } from '../../../domain/events/clients.js';
import { CAPTURED } from './capturedClients.js';
import { callOf, classesOf, SPAN_ID, TRACE_ID } from './support.js';

describe('a real client’s span', () => {
  it.each(CAPTURED)('$client', ({ parts, classes, source, semantics, missing, requestId, provider }) => {
    const call = callOf(parts);
    expect(classesOf(call)).toEqual(classes);
    expect(call.origin).toMatchObject({
      usageSource: source,
      inputSemantics: semantics,
      usageMissing: missing,
      usageFlags: [],
    });
    const isResponse = requestId === 'response';
    expect(call.responseId === null).toBe(!isResponse);
    expect(call.requestId).toBe(isResponse ? call.responseId : `${TRACE_ID}:${SPAN_ID}`);
    if (provider !== undefined) expect(call.provider).toBe(provider);
    expect(call.status).toBe('ok');
    expect(call.origin.usageRaw?.length).toBeGreaterThan(10);
  });

  it('counts cached tokens of an inclusive provider once more as reported, never of an exclusive one', () => {
    for (const { parts } of CAPTURED) {
      const { usage, provider } = callOf(parts);
      expect(usage?.cached).toBe(provider === 'anthropic' ? 0 : usage?.cacheRead);
    }
  });
});

describe('the table of clients', () => {
  it('has rows of one scope in rising versions, the last one open', () => {
    const scopes = [...new Set(CLIENTS.map(({ scope }) => scope))];
    for (const scope of scopes) {
      const rows = CLIENTS.filter((client) => client.scope === scope);
      expect(rows.slice(0, -1).every(({ below }) => below !== undefined)).toBe(true);
      expect(rows[rows.length - 1]?.below).toBeUndefined();
    }
  });

  it('takes a span without a version for the newest', () => {
    expect(findClient('@traceloop/instrumentation-anthropic', '')?.semantics).toBe('inclusive');
    expect(findClient('@traceloop/instrumentation-anthropic', '0.27.0')?.semantics).toBe('exclusive');
    expect(findClient('somebody-else', '1')).toBeUndefined();
  });

  it.each([
    ['0.1.22', '0.2.0', true],
    ['0.2.0', '0.2.0', false],
    ['0.10.0', '0.9.0', false],
    ['v1.2', '1.2.1', true],
    ['0.27.0-beta.1', '0.27.1', true],
    ['1.0.0+build', '0.9.9', false],
  ])('%s is below %s: %s', (version, bound, below) => {
    expect(isBelow(version, bound)).toBe(below);
  });
});
