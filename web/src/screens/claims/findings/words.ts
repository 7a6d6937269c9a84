import type { components } from '../../../api/client';

export type ReviewItem = components['schemas']['ReviewItem'];
export type Finding = components['schemas']['Finding'];
export type WholeFinding = components['schemas']['WholeFinding'];
type Kind = 'plain' | 'good' | 'warn' | 'bad' | 'accent';

export const STATUS: Record<ReviewItem['status'], { label: string; kind: Kind }> = {
  open: { label: 'Open', kind: 'accent' },
  confirmed: { label: 'Confirmed', kind: 'good' },
  dismissed: { label: 'Dismissed', kind: 'plain' },
  gone: { label: 'No longer found', kind: 'plain' },
};

export const SEVERITY: Record<ReviewItem['severity'], { label: string; kind: Kind }> = {
  high: { label: 'High', kind: 'bad' },
  medium: { label: 'Medium', kind: 'warn' },
  low: { label: 'Low', kind: 'plain' },
};

export const BLAME: Record<Finding['blame'], string> = {
  provider: 'The provider’s mistake',
  own: 'The organization’s own mistake',
  none: 'Nobody’s mistake, or not known',
};

export const GATE: Record<Finding['missing_gates'][number], string> = {
  closed_period: 'The days are not final.',
  quantity_present: 'The bill has no quantities.',
  price_source_dated: 'No price source dates the rate.',
  price_sources_agree: 'Price sources disagree.',
  classes_complete: 'Token classes are incomplete.',
  coverage_or_sealed_scope: 'Not all calls are recorded.',
  residual_within_tolerance: 'The explanation leaves a rest.',
  odds_against_next: 'Another explanation is nearly as likely.',
  account_known: 'The account is unknown.',
  evidence_needed: 'This kind needs further evidence.',
};
