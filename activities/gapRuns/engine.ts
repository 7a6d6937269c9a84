import type { SuspectKey } from '../../domain/billing/providerKeys.js';
import type { Provider } from '../../domain/providers.js';
import type { ChargePrices } from '../../domain/reconciliation/charges.js';
import type { SeriesDayEvidence } from '../../domain/reconciliation/evidence/seriesDay.js';
import type { Finding, SeriesExplanation } from '../../domain/reconciliation/inference/finding.js';
import type { WeightSet } from '../../domain/reconciliation/weights/weightSet.js';

/** Stands in for the engine's functions until they are there. */
export function explainSeries(input: {
  provider: Provider;
  accountId: string;
  model: string;
  days: readonly SeriesDayEvidence[];
  prices: ChargePrices;
  weights: WeightSet;
  invoiceTies?: ReadonlyMap<string, 'exact' | 'close' | 'contradicts'>;
}): SeriesExplanation {
  const { provider, accountId, model } = input;
  return { provider, accountId, model, findings: [], days: [], residuals: [] };
}

export function explainAccount(input: {
  provider: Provider;
  accountId: string;
  series: readonly SeriesExplanation[];
  suspectKeys: readonly SuspectKey[];
  prices: ChargePrices;
  weights: WeightSet;
}): Finding[] {
  return input.series.flatMap(({ findings }) => findings);
}
