import type { GapRun } from '../../db/queries/gapRuns.js';
import type { Provider } from '../../domain/providers.js';
import type { RunWork } from './runWork.js';

/** By how many hours each provider's days are shifted against UTC; providers whose days are not are left out. */
export async function estimateOffsets(
  _work: RunWork,
  _days: readonly { provider: Provider; day: string }[],
  _isUnchanged: (day: { provider: Provider; day: string }) => boolean,
): Promise<GapRun['dayOffsets']> {
  return {};
}
