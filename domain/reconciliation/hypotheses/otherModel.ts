import { absPico, type Pico } from '../../money.js';
import type { Hypothesis, MeterDay, SeriesDay, Variant } from './hypothesis.js';
import { amountAs, type Otherwise, otherCharge, under } from './predict.js';
import { chargedMeters } from './ratios.js';
import { lasts, touchesEdge } from './runs.js';
import { sentenceOf } from './words.js';

const WORDS = { rates_of: 'The rates of another model were charged: those of %.' };

/**
 * The rates of another model of the provider, for some days between days at the model's own. Two classes must both be
 * charged exactly as it would charge them: one ratio alone is some model's by chance.
 */
export const otherModelRate: Hypothesis = {
  kind: 'model_misattribution',
  nature: 'rate',
  blame: 'provider',
  needs: ['quantity', 'second_price_source'],
  variants: (day) => {
    const model = day.pricedAs;
    if (model === null) return [];
    const wrong = chargedMeters(day.meters).filter(
      (meter) => !isAmount(meter, meter.expectedPico ?? 0n) && meter.tokenClass !== 'input_audio',
    );
    if (new Set(wrong.map((meter) => meter.tokenClass)).size < 2) return [];
    if (isOwnRate(day, model, wrong)) return [];
    const seen = new Set<string>();
    return day.agreed.otherModelsOf(model).flatMap((other): Variant[] => {
      const amounts = wrong.map((meter) =>
        amountAs(day, meter, meter.meter.quantity ?? 0n, { model: other }),
      );
      if (!wrong.every((meter, at) => isAmount(meter, amounts[at] ?? null))) return [];
      // Models at one price are one suspicion: the first by its id stands for them.
      const key = amounts.join();
      if (seen.has(key)) return [];
      seen.add(key);
      return otherCharge(day, `rates_of:${other}`, { model: other });
    });
  },
  fits: (run, context) => lasts(run) && !touchesEdge(run, context),
  describe: (variant) => sentenceOf(WORDS, variant),
  advise: () => ['Name some of the calls: each answer says which model gave it.'],
};

/** The model's own rates under other circumstances or at other times explain it: no other model is needed. */
function isOwnRate(day: SeriesDay, model: string, wrong: readonly MeterDay[]): boolean {
  const ways: Otherwise[] = [
    { rates: day.list },
    { circumstances: under({ isBatch: false }) },
    { circumstances: under({ isBatch: true }) },
    { circumstances: under({ longContext: true }) },
    { circumstances: under({ longContext: false, contextBand: 0 }) },
    { circumstances: under({ region: null }) },
    ...day.agreed.tiersOf(model).map((serviceTier) => ({ circumstances: under({ serviceTier }) })),
    ...day.agreed.regionsOf(model).map((region) => ({ circumstances: under({ region }) })),
    ...(day.agreed.periodsOf(model)?.periods ?? []).map(({ rates }) => ({ rates })),
  ];
  return ways.some((way) =>
    wrong.every((meter) => isAmount(meter, amountAs(day, meter, meter.meter.quantity ?? 0n, way))),
  );
}

const NOISE_PARTS = 2_000n;

function isAmount({ meter }: MeterDay, amount: Pico | null): boolean {
  if (amount === null) return false;
  const difference = absPico(meter.amountPico - amount);
  return difference <= meter.roundingPico + 1n || difference * NOISE_PARTS < amount;
}
