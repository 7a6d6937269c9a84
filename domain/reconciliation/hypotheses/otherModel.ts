import { absPico, type Pico } from '../../money.js';
import type { Hypothesis, MeterDay, Variant } from './hypothesis.js';
import { amountAs, otherCharge } from './predict.js';
import { chargedMeters } from './ratios.js';
import { sentenceOf } from './words.js';

const WORDS = { rates_of: 'The rates of another model were charged: those of %.' };

/**
 * The rates of another model of the provider. Two classes must both be charged exactly as it would charge them: one
 * ratio alone is some model's by chance.
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
  describe: (variant) => sentenceOf(WORDS, variant),
  advise: () => ['Name some of the calls: each answer says which model gave it.'],
};

const NOISE_PARTS = 2_000n;

function isAmount({ meter }: MeterDay, amount: Pico | null): boolean {
  if (amount === null) return false;
  const difference = absPico(meter.amountPico - amount);
  return difference <= meter.roundingPico + 1n || difference * NOISE_PARTS < amount;
}
