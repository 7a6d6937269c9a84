/** Whether use that stands under two models was billed wrongly, or told wrongly. */
import type { Finding } from '../inference/finding.js';
import type { FindingKind } from '../taxonomy.js';
import type { MovedUse } from './movedModels.js';

/**
 * What the events' model is: of every call the one that its `answered`; else of the one that was asked for, for some days
 * (`episode`), or from a day on, up to one, or always (`lasting`). A router that falls back to another model, or a gateway that
 * serves another, is rightly billed by the model that answered.
 */
export type WhoseModel = 'answered' | 'episode' | 'lasting';

export function whoseIs({ from, to, days }: MovedUse): WhoseModel {
  if (days.every((one) => one.lack.namedByAnswer)) return 'answered';
  const known = [...from.days, ...to.days].map((one) => one.day).sort();
  const isAtEdge = days[0]?.day === known[0] || days.at(-1)?.day === known.at(-1);
  return isAtEdge ? 'lasting' : 'episode';
}

interface Saying {
  /** The most that quantities alone make of it. */
  readonly probability: number;
  readonly rival: FindingKind;
  readonly level: string;
  says(from: string, to: string): Pick<Finding, 'kind' | 'variant' | 'blame' | 'cause' | 'advice'>;
}

const moved = (from: string, to: string) =>
  `The bill counts more of ${to} than the events name, and as much less of ${from} on the same days`;

const SEND_ANSWERED =
  'Send response_model, the model that the answer names, with every call: the one that was asked for need not be the one that answered.';

export const WHOSE: Readonly<Record<WhoseModel, Saying>> = {
  answered: {
    probability: 1,
    rival: 'unobserved_usage',
    level: 'the answers name it',
    says: (from, to) => ({
      kind: 'model_misattribution',
      variant: `billed_for:${from}`,
      blame: 'provider',
      cause: `${moved(from, to)}: calls that ${from} answered were billed as ${to}.`,
      advice: [
        'Name some of the calls: each answer says which model gave it. Ask for both models’ lines to be corrected together.',
      ],
    }),
  },
  episode: {
    probability: 0.8,
    rival: 'client_metering_error',
    level: 'not every answer is known to name it; for some days',
    says: (from, to) => ({
      kind: 'model_misattribution',
      variant: `billed_for:${from}`,
      blame: 'provider',
      cause: `${moved(from, to)}: calls of ${from} were billed as ${to}, or the events name the model that was asked for, not the one that answered.`,
      advice: [
        SEND_ANSWERED,
        'If the answers of these calls name the model of the events, ask for both models’ lines to be corrected together.',
      ],
    }),
  },
  lasting: {
    probability: 0.8,
    rival: 'model_misattribution',
    level: 'not every answer is known to name it; for good',
    says: (from, to) => ({
      kind: 'client_metering_error',
      variant: `model_as_requested:${from}`,
      blame: 'own',
      cause: `${moved(from, to)}: the events seem to name the model that was asked for, not the one that answered.`,
      advice: [SEND_ANSWERED],
    }),
  },
};
