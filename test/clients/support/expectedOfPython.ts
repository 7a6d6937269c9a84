/** The events that Trueup must have of a Python client's calls. */
import type { PlannedCall } from '../../fakes/plannedCall.js';
import type { CostCalculator } from '../costCalculator.js';
import { type ExpectedEvent, expectedEvents } from './expectedEvents.js';
import type { PythonCase } from './pythonClients.js';

export function expectedOfPython(
  client: PythonCase,
  plan: readonly PlannedCall[],
  calculator: CostCalculator,
  atMillis: number,
): ExpectedEvent[] {
  const expected = expectedEvents(plan, client.facts, calculator, atMillis);
  if (client.alsoTellsFailures === undefined) return expected;
  const failed = plan.filter((call) => call.fate === 'fail400' || call.fate === 'fail429');
  return [...expected, ...expectedEvents(failed, client.alsoTellsFailures, calculator, atMillis)];
}
