import { beforeAll, describe, expect, it } from 'vitest';
import { runBenchmark } from '../../lab/bench/reconciliation/benchmark.js';
import { isReached, metricsOf, TARGETS } from '../../lab/bench/reconciliation/metrics.js';
import { causeTable, falseTable, mainTable, type Tallies } from '../../lab/bench/reconciliation/report.js';
import type { Tally } from '../../lab/bench/reconciliation/tally.js';
import { generateFirst } from '../../lab/generators/first/generateFirst.js';

/**
 * Small worlds of seeds that the engine was developed with: a change that makes it worse shows here first. Several, since one
 * series may hold half the dollars of one of them. Chosen because they reach the targets, so this holds what is reached and
 * measures nothing: of seeds 1 to 3, $21 of the $34 that can be told are one series' price of another period, found whole at V3 and
 * graded MEDIUM (recall of HIGH 0.27, of all 0.92), and not at V1 (0.06). docs/benchmarks.md has the figures of larger worlds.
 */
const SEEDS = [4, 7, 8];
const SIZE = { series: 20, days: 24, callsPerDay: 10 };
/** Too few findings to say how far probabilities keep what they promise: `npm run bench:reconciliation` says it. */
const NEEDS_MANY = 'expected calibration error';

let tallies: Tallies;

beforeAll(async () => {
  const mixed = SEEDS.map((seed) => generateFirst({ seed, size: SIZE }));
  const benign = SEEDS.map((seed) => generateFirst({ seed, size: SIZE, set: 'benign_only' }));
  const judged = await runBenchmark(mixed, ['V3', 'V1', 'V0']);
  const [nothingWrong] = (await runBenchmark(benign, ['V3'])).values();
  tallies = new Map([...judged, ['benign', nothingWrong as Tally]]);
}, 400_000);

describe('what the engine finds in generated bills', () => {
  for (const target of TARGETS.filter(({ words }) => words !== NEEDS_MANY))
    it(`reaches its target: ${target.of}, ${target.words}`, () => {
      const tally = tallies.get(target.of) as Tally;
      const told = `${mainTable(tallies)}\n${causeTable(tally)}\n${falseTable(tally)}`;
      expect(isReached(target, metricsOf(tally)), told).toBe(true);
    });

  it('is taken from enough to mean something', () => {
    const tally = tallies.get('V3') as Tally;
    expect(tally.identifiable).toBeGreaterThan(20);
    expect([...tally.causes].filter(([, { identifiable }]) => identifiable > 0).length).toBeGreaterThan(4);
    expect(tally.seriesDays).toBeGreaterThan(600);
  });

  it('is more than a rule of thumb finds without being wrong', () => {
    const tally = tallies.get('V3') as Tally;
    for (const { claimed, right } of tally.rules.values())
      expect(right / claimed).toBeLessThan(metricsOf(tally).precision);
  });
});
