import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ItemFault } from '../../../domain/events/itemFault.js';
import { readLangfuseItems } from '../../../domain/events/observations/langfuseBatch.js';
import {
  callOfGeneration,
  isCallable,
  joinFields,
  type ObservationRecord,
  traceMark,
} from '../../../domain/events/observations/observationRecord.js';
import { propertyRuns } from '../../support/propertyRuns.js';

const CONTEXT = {
  nowMicros: 1_800_000_000_000_000n,
  oldestMicros: 1_500_000_000_000_000n,
  inferProvider: () => 'openai' as const,
};

/** A part of one generation as a client sends it; few values, so that parts contradict each other. */
const aPart = fc.record(
  {
    isCreate: fc.boolean(),
    atMillis: fc.integer({ min: 0, max: 3 }),
    model: fc.constantFrom('gpt-4o', 'gpt-4o-2024-08-06'),
    endTime: fc.constantFrom('2026-01-31T12:00:01Z', '2026-01-31T12:00:02Z'),
    usage: fc.record({ input: fc.nat(100), output: fc.nat(100) }),
    level: fc.constantFrom('DEFAULT', 'ERROR'),
    team: fc.constantFrom('growth', 'search'),
  },
  { requiredKeys: ['isCreate', 'atMillis'] },
);

type Part = typeof aPart extends fc.Arbitrary<infer T> ? T : never;

function itemOf({ isCreate, atMillis, team, ...fields }: Part) {
  return {
    id: 'item',
    type: isCreate ? 'generation-create' : 'generation-update',
    timestamp: new Date(Date.UTC(2026, 0, 31, 12) + atMillis).toISOString(),
    body: {
      id: 'g',
      traceId: '0f7a1c52-7b57-4d0c-9e1a-0a6f6a7c2f10',
      ...fields,
      ...(team === undefined ? {} : { metadata: { team_id: team } }),
    },
  };
}

function joined(parts: readonly Part[]): ObservationRecord {
  const read = readLangfuseItems(parts.map(itemOf)).observations?.parts ?? [];
  let record: ObservationRecord = { kind: 'generation', id: 'g', traceId: null, fields: {} };
  for (const { traceId, fields } of read)
    record = { ...record, traceId, fields: joinFields(record.fields, fields) };
  return record;
}

const callOf = (record: ObservationRecord, trace?: ObservationRecord) =>
  callOfGeneration({ record, trace, contents: [], keyId: 'key_a' }, CONTEXT);

describe('an observation that is reported in parts', () => {
  it('is the same record in every order of its parts, also where they are repeated', () => {
    fc.assert(
      fc.property(fc.array(aPart, { maxLength: 6 }), fc.infiniteStream(fc.nat()), (parts, numbers) => {
        const shuffled = [...parts, ...parts]
          .map((part) => ({ part, place: numbers.next().value as number }))
          .sort((one, other) => one.place - other.place)
          .map(({ part }) => part);
        expect(joined(shuffled)).toEqual(joined(parts));
      }),
      { numRuns: propertyRuns(200) },
    );
  });

  it('is a call once its create and a model have arrived', () => {
    const update: Part = { isCreate: false, atMillis: 1, model: 'gpt-4o' };
    expect(isCallable(joined([update]))).toBe(false);
    expect(isCallable(joined([{ isCreate: true, atMillis: 0 }]))).toBe(false);
    expect(isCallable(joined([update, { isCreate: true, atMillis: 0 }]))).toBe(true);
  });

  it('has the model of its create; an update names the one that answered', () => {
    const call = callOf(
      joined([
        { isCreate: false, atMillis: 0, model: 'gpt-4o-2024-08-06' },
        { isCreate: true, atMillis: 1, model: 'gpt-4o' },
      ]),
    );
    expect(call).toMatchObject({ model: 'gpt-4o', responseModel: 'gpt-4o-2024-08-06' });
  });

  it('begins when its create was reported where the create has no start', () => {
    const { startMicros } = callOf(joined([{ isCreate: true, atMillis: 2, model: 'gpt-4o' }]));
    expect(startMicros).toBe(BigInt(Date.UTC(2026, 0, 31, 12) + 2) * 1_000n);
  });

  it('rejects an end before the start', () => {
    const record = joined([
      { isCreate: true, atMillis: 0, model: 'gpt-4o' },
      { isCreate: false, atMillis: 1, endTime: '2026-01-31T12:00:01Z' },
    ]);
    const late = { ...record.fields, startTime: [5, 0, '2026-01-31T12:00:09Z'] as const };
    expect(() => callOf({ ...record, fields: late })).toThrow(ItemFault);
  });

  it('has the labels of its trace, its own metadata first', () => {
    const trace: ObservationRecord = {
      kind: 'trace',
      id: 't',
      traceId: null,
      fields: {
        userId: [1, 0, 'user-7'],
        'metadata.team_id': [1, 0, 'search'],
        'metadata.feature': [1, 0, 'chat'],
      },
    };
    const record = joined([{ isCreate: true, atMillis: 0, model: 'gpt-4o', team: 'growth' }]);
    expect(callOf(record, trace)).toMatchObject({ userId: 'user-7', teamId: 'growth', feature: 'chat' });
  });

  it('has a place in its trace that keys with equal ids do not share, unless the id is a UUID', () => {
    const record = { ...joined([{ isCreate: true, atMillis: 0, model: 'gpt-4o' }]), traceId: 'trace-1' };
    const placeFor = (keyId: string, traceId: string) =>
      callOfGeneration({ record: { ...record, traceId }, trace: undefined, contents: [], keyId }, CONTEXT)
        .trace;
    expect(placeFor('key_a', 'trace-1')).not.toEqual(placeFor('key_b', 'trace-1'));
    const uuid = '0F7A1C52-7b57-4d0c-9e1a-0a6f6a7c2f10';
    expect(placeFor('key_a', uuid)?.traceId).toBe('0f7a1c527b574d0c9e1a0a6f6a7c2f10');
  });
});

describe('the labels of a trace', () => {
  it('have one mark, whenever and in which order they were reported', () => {
    const trace = (fields: ObservationRecord['fields']): ObservationRecord => ({
      kind: 'trace',
      id: 't',
      traceId: null,
      fields,
    });
    const mark = traceMark(trace({ userId: [1, 0, 'a'], name: [2, 0, 'b'] }));
    expect(traceMark(trace({ name: [9, 1, 'b'], userId: [9, 1, 'a'], created: [1, 0, true] }))).toBe(mark);
    expect(traceMark(trace({ userId: [1, 0, 'b'] }))).not.toBe(mark);
    expect(traceMark(trace({}))).toBe('');
  });
});

describe('an item of a batch', () => {
  it.each([
    ['without a type', { id: 'i', timestamp: '2026-01-31T12:00:00Z', body: {} }],
    ['without an id of its observation', { type: 'generation-create', body: {} }],
    ['whose usage is no object', { body: { id: 'g', usage: 5 }, type: 'generation-create' }],
    ['with a negative cost', { body: { id: 'g', costDetails: { total: -1 } }, type: 'generation-create' }],
    ['without a time', { timestamp: undefined, body: { id: 'g' }, type: 'generation-create' }],
    [
      'with more tags than a record keeps',
      { body: { id: 't', tags: ['x'.repeat(17_000)] }, type: 'trace-create' },
    ],
  ])('%s is rejected alone', (_, fields) => {
    const good = itemOf({ isCreate: true, atMillis: 0, model: 'gpt-4o' });
    const bad = { id: 'bad', timestamp: '2026-01-31T12:00:00Z', ...fields };
    const { observations, rejections } = readLangfuseItems([good, bad, good]);
    expect(rejections.map(({ index }) => index)).toEqual([1]);
    expect(observations?.parts.map(({ index }) => index)).toEqual([0, 2]);
  });

  it('that is an observation without a model’s work is ignored', () => {
    const span = {
      id: 'i',
      type: 'observation-create',
      timestamp: '2026-01-31T12:00:00Z',
      body: { id: 's', type: 'SPAN' },
    };
    expect(readLangfuseItems([span])).toMatchObject({ ignored: 1, rejections: [] });
    const generation = { ...span, body: { id: 'g', type: 'GENERATION' } };
    expect(readLangfuseItems([generation]).observations?.parts).toHaveLength(1);
  });
});
