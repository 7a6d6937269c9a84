/**
 * Whether this is the second time that a file runs, in the slow suite: what takes long there is short in the gate, and
 * asserts the same. test/support/suite.ts finds the files by their import of this one.
 */
export const isLongRun = (): boolean => process.env.LONG_RUNS === '1';

/** Runs of a property: these in the gate, four times as many in the slow suite. TEST_RUNS sets another number. */
export function propertyRuns(inTheGate: number): number {
  const { TEST_RUNS } = process.env;
  if (TEST_RUNS !== undefined) return Number(TEST_RUNS);
  return isLongRun() ? 4 * inTheGate : inTheGate;
}
