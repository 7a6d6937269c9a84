import type { PriceProposal } from '../../../db/pricing/proposals.js';
import { publicId } from '../../../domain/ids.js';
import { decimalFromPico } from '../../../domain/money.js';
import { isoFromMicros, isoOrNull } from '../../../domain/period.js';
import { type CsvColumns, type CsvTable, csvInteger, csvTable, csvUsd } from '../../csv.js';

const COLUMNS: CsvColumns<PriceProposal> = [
  ['id', ({ id }) => publicId('prp', id)],
  ['status', ({ status }) => status],
  ['feed', ({ feed }) => feed],
  ['provider', ({ provider }) => provider],
  ['model', ({ model }) => model],
  ['kind', ({ kind }) => kind],
  ['rates', ({ rates }) => rates.map(rateText).join('; ')],
  ['is_jump', ({ isJump }) => String(isJump)],
  ['suspicions', ({ suspicions }) => suspicions.join('; ')],
  ['retrieved_on', ({ retrievedOn }) => retrievedOn],
  ['effect_until', ({ effectUntilMicros }) => isoFromMicros(effectUntilMicros)],
  ['calls', ({ calls }) => csvInteger(calls)],
  ['current_cost_usd', ({ currentPico }) => csvUsd(currentPico)],
  ['proposed_cost_usd', ({ proposedPico }) => csvUsd(proposedPico)],
  [
    'change_usd',
    ({ currentPico, proposedPico }) =>
      csvUsd(currentPico === null || proposedPico === null ? null : proposedPico - currentPico),
  ],
  ['created_at', ({ createdAtMicros }) => isoFromMicros(createdAtMicros)],
  ['decided_at', ({ decidedAtMicros }) => isoOrNull(decidedAtMicros)],
  ['decided_by', ({ decidedBy }) => decidedBy],
  ['reason', ({ reason }) => reason],
  ['override_id', ({ overrideId }) => (overrideId === null ? null : publicId('ovr', overrideId))],
];

/** `standard input 2.5 → 3`, in USD per million tokens. */
function rateText({ tier, rateClass, before, after }: PriceProposal['rates'][number]): string {
  return `${tier} ${rateClass} ${before === null ? 'unknown' : decimalFromPico(before)} → ${decimalFromPico(after)}`;
}

export const proposalsCsv = (proposals: readonly PriceProposal[]): CsvTable =>
  csvTable('price-proposals', COLUMNS, proposals);
