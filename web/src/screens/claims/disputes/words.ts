import type { components } from '../../../api/client';

export type Dispute = components['schemas']['Dispute'];

export const STATUS = {
  open: { label: 'Open', kind: 'accent' },
  claimed: { label: 'Claimed', kind: 'warn' },
  resolved: { label: 'Resolved', kind: 'good' },
} as const;

export const RESOLUTIONS = [
  { value: 'credit_received', label: 'Credit received' },
  { value: 'credit_partial', label: 'Partial credit received' },
  { value: 'provider_correct', label: 'The provider was right' },
  { value: 'our_error', label: 'Our own error' },
  { value: 'duplicate', label: 'Duplicate of another dispute' },
  { value: 'written_off', label: 'Written off' },
  { value: 'other', label: 'Other' },
] as const;

export const resolutionName = (value: string) =>
  RESOLUTIONS.find((one) => one.value === value)?.label ?? value;
