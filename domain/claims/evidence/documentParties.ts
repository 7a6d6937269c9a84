/** Who a claim's document names, and the sentence by which a finding states the fault, as the provider reads it. */
import { PROVIDER_FACTS } from '../../providers.js';
import type { ClaimEvidence, EvidenceDispute } from './claimEvidence.js';
import { withDays } from './documentTexts.js';

export const providerName = ({ claim }: ClaimEvidence): string =>
  PROVIDER_FACTS.find((facts) => facts.slug === claim.provider)?.displayName ?? claim.provider;

/** Where the days of the bill begin. */
export const billZone = ({ claim }: ClaimEvidence): string =>
  claim.provider === 'google' ? 'Pacific Time' : 'UTC';

/**
 * The sentence of a finding that states its impact. The document states each amount in its tables, where it is rounded
 * with the claim.
 */
const IMPACT =
  / The bill is \$[\d,.]+ (?:too (?:much|little)|(?:above|below) what these events cost) on [^.]*\./;

/** The fault in a sentence, with the provider by its name. */
export function faultText({ reason }: EvidenceDispute, provider: string): string {
  const fault = reason
    .replace(IMPACT, '')
    .replaceAll('the provider’s', `${provider}’s`)
    .replaceAll('the provider', provider);
  return withDays(fault);
}
