import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { InputSemantics } from '../../../domain/events/event.js';
import { normaliseUsage, type ReportedUsage } from '../../../domain/events/usage.js';

/** The same call in the report of each kind of client: true classes → counts. */
interface TrueUsage {
  input: number;
  cacheRead: number;
  write5m: number;
  write1h: number;
  output: number;
  reasoning: number;
  audioIn: number;
  audioOut: number;
}

const tokens = fc.oneof(fc.constantFrom(0, 1), fc.nat(5_000), fc.nat(2_000_000));
const trueUsage: fc.Arbitrary<TrueUsage> = fc
  .record({
    input: tokens,
    cacheRead: tokens,
    write5m: tokens,
    write1h: fc.oneof(fc.constant(0), tokens),
    output: tokens,
    reasoningShare: fc.integer({ min: 0, max: 100 }),
    audioIn: fc.oneof(fc.constant(0), tokens),
    audioOut: fc.oneof(fc.constant(0), tokens),
  })
  .map(({ reasoningShare, ...usage }) => ({
    ...usage,
    reasoning: Math.floor((usage.output * reasoningShare) / 100),
  }));

const written = (usage: TrueUsage) => usage.write5m + usage.write1h;
const allInput = (usage: TrueUsage) => usage.input + usage.audioIn + usage.cacheRead + written(usage);
const allOutput = (usage: TrueUsage) => usage.output + usage.audioOut;

const DIALECTS: Record<string, { semantics: InputSemantics; tell(usage: TrueUsage): ReportedUsage }> = {
  inclusive: {
    semantics: 'inclusive',
    tell: (usage) => ({
      input: allInput(usage),
      output: allOutput(usage),
      cacheRead: usage.cacheRead,
      cacheWrite: written(usage),
      cacheWrite5m: usage.write5m,
      cacheWrite1h: usage.write1h,
      reasoning: usage.reasoning,
      inputAudio: usage.audioIn,
      outputAudio: usage.audioOut,
      total: allInput(usage) + allOutput(usage),
    }),
  },
  exclusive: {
    semantics: 'exclusive',
    tell: (usage) => ({
      input: usage.input + usage.audioIn,
      output: allOutput(usage),
      cacheRead: usage.cacheRead,
      cacheWrite: written(usage),
      cacheWrite1h: usage.write1h,
      reasoning: usage.reasoning,
      inputAudio: usage.audioIn,
      outputAudio: usage.audioOut,
    }),
  },
  'exclusive with a total of what was sent': {
    semantics: 'exclusive',
    tell: (usage) => ({
      ...(DIALECTS.exclusive as { tell(usage: TrueUsage): ReportedUsage }).tell(usage),
      total: usage.input + usage.audioIn + allOutput(usage),
    }),
  },
  'exclusive with a total of all': {
    semantics: 'inclusive',
    tell: (usage) => ({
      ...(DIALECTS.exclusive as { tell(usage: TrueUsage): ReportedUsage }).tell(usage),
      reasoning: 0,
      total: allInput(usage) + allOutput(usage),
    }),
  },
  disjoint: {
    semantics: 'disjoint',
    tell: (usage) => ({
      input: usage.input,
      output: usage.output - usage.reasoning,
      cacheRead: usage.cacheRead,
      cacheWrite5m: usage.write5m,
      cacheWrite1h: usage.write1h,
      reasoning: usage.reasoning,
      inputAudio: usage.audioIn,
      outputAudio: usage.audioOut,
      total: allInput(usage) + allOutput(usage),
    }),
  },
};

describe('every dialect of one call yields the same disjoint classes', () => {
  it.each(Object.entries(DIALECTS))('%s', (name, { semantics, tell }) => {
    fc.assert(
      fc.property(trueUsage, (usage) => {
        const told = tell(usage);
        // Without a cached part the total proves nothing, and no proof is needed.
        const { usage: read, flags } = normaliseUsage(told, semantics);
        expect([
          read.input,
          read.cacheRead,
          read.cacheCreation,
          read.output,
          read.inputAudio,
          read.outputAudio,
        ]).toEqual([
          usage.input,
          usage.cacheRead,
          written(usage),
          usage.output,
          usage.audioIn,
          usage.audioOut,
        ]);
        if (written(usage) > 0)
          expect([read.cacheCreation5m, read.cacheCreation1h]).toEqual([usage.write5m, usage.write1h]);
        if (name !== 'exclusive with a total of all') expect(read.reasoning).toBe(usage.reasoning);
        expect(flags).toEqual([]);
      }),
      { verbose: 1 },
    );
  });

  it('an exclusive input is recognised without any table when it is smaller than its cached parts', () => {
    fc.assert(
      fc.property(trueUsage, (usage) => {
        fc.pre(usage.input + usage.audioIn < usage.cacheRead + written(usage));
        const told = (DIALECTS.exclusive as { tell(usage: TrueUsage): ReportedUsage }).tell(usage);
        const read = normaliseUsage(told, 'inclusive');
        expect([read.semantics, read.usage.input, read.usage.cacheRead]).toEqual([
          'exclusive',
          usage.input,
          usage.cacheRead,
        ]);
      }),
    );
  });

  it('never yields a negative count of a class, and keeps every token that was reported', () => {
    const any = fc.option(fc.nat(10_000), { nil: undefined });
    const report = fc.record({
      input: any,
      output: any,
      cacheRead: any,
      cacheWrite: any,
      cacheWrite5m: any,
      cacheWrite1h: any,
      reasoning: any,
      total: any,
      inputAudio: any,
      outputAudio: any,
    });
    fc.assert(
      fc.property(
        report,
        fc.constantFrom<InputSemantics>('inclusive', 'exclusive', 'disjoint'),
        (raw, semantics) => {
          const told = Object.fromEntries(
            Object.entries(raw).filter(([, value]) => value !== undefined),
          ) as ReportedUsage;
          const { usage } = normaliseUsage(told, semantics);
          for (const count of Object.values(usage))
            if (count !== null) expect(count).toBeGreaterThanOrEqual(0);
          const sum = usage.input + usage.inputAudio + usage.cacheRead + usage.cacheCreation;
          expect(sum).toBeGreaterThanOrEqual(told.input ?? 0);
          expect(usage.output + usage.outputAudio).toBeGreaterThanOrEqual(told.output ?? 0);
        },
      ),
      { verbose: 1 },
    );
  });
});

describe('contradictory usage is flagged, not repaired', () => {
  it.each([
    ['a total that is no sum', { input: 100, output: 50, total: 500 }, 'inclusive', ['total_mismatch']],
    [
      'lifetimes that are not the write',
      { input: 500, output: 1, cacheWrite: 200, cacheWrite5m: 150, cacheWrite1h: 60 },
      'inclusive',
      ['cache_split_mismatch'],
    ],
    [
      'more audio than uncached input',
      { input: 1000, cacheRead: 900, output: 1, inputAudio: 300 },
      'inclusive',
      ['audio_exceeds_input'],
    ],
    [
      'more audio than output',
      { input: 1, output: 5, outputAudio: 6 },
      'inclusive',
      ['audio_exceeds_output'],
    ],
    [
      'more reasoning than output',
      { input: 1, output: 5, reasoning: 60 },
      'inclusive',
      ['reasoning_exceeds_output'],
    ],
  ] as [string, ReportedUsage, InputSemantics, string[]][])('%s', (_, told, semantics, flags) => {
    expect(normaliseUsage(told, semantics).flags).toEqual(flags);
  });

  it('reasoning that the total shows to be separate belongs to the output', () => {
    const { usage, flags } = normaliseUsage(
      { input: 100, output: 20, reasoning: 15, total: 135 },
      'inclusive',
    );
    expect([usage.output, usage.reasoning, flags]).toEqual([35, 15, []]);
  });

  it('a count that is absent is what the total leaves for it', () => {
    expect(normaliseUsage({ input: 8, total: 8 }, 'inclusive').usage).toMatchObject({ input: 8, output: 0 });
    expect(normaliseUsage({ output: 3, total: 11 }, 'inclusive').usage).toMatchObject({
      input: 8,
      output: 3,
    });
  });

  it('lifetimes of a write are known to be zero only when the write is', () => {
    expect(normaliseUsage({ input: 1 }, 'inclusive').usage.cacheCreation1h).toBeNull();
    expect(normaliseUsage({ input: 1, cacheWrite: 0 }, 'inclusive').usage.cacheCreation1h).toBe(0);
    expect(normaliseUsage({ input: 9, cacheWrite: 5 }, 'inclusive').usage.cacheCreation1h).toBeNull();
  });
});
