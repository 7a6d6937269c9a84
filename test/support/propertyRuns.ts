/**
 * Whether this is a file's second run, in the slow suite: long checks are short in the gate, with the same assertions.
 * test/support/suite.ts finds the files by their import of this one.
 */
export const isLongRun = (): boolean => process.env.LONG_RUNS === '1';

/** Runs of a property: these in the gate, four times as many in the slow suite. TEST_RUNS sets another number. */
export function propertyRuns(inTheGate: number): number {
  const { TEST_RUNS } = process.env;
  if (TEST_RUNS !== undefined) return Number(TEST_RUNS);
  return isLongRun() ? 4 * inTheGate : inTheGate;
}
