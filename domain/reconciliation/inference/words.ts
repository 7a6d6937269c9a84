/** What a finding says of itself, in whole sentences. */
import { decimalFromPico, PICO_PER_USD, type Pico } from '../../money.js';
import type { Gate } from './finding.js';

/** Dollars and cents, rounded towards zero. */
export function dollarsOf(pico: Pico): string {
  const cents = (pico < 0n ? -pico : pico) / (PICO_PER_USD / 100n);
  return `$${decimalFromPico(cents * (PICO_PER_USD / 100n)).replace(/(\.\d)$/, '$10')}`;
}

/** The days of a finding: "on 2026-10-05", "on 3 days from 2026-10-05 to 2026-10-07". */
export function daysText(days: readonly string[]): string {
  const [first, last] = [days[0] ?? '', days.at(-1) ?? ''];
  return days.length === 1 ? `on ${first}` : `on ${days.length} days from ${first} to ${last}`;
}

export function impactText(impactPico: Pico): string {
  return impactPico >= 0n ? `${dollarsOf(impactPico)} too much` : `${dollarsOf(impactPico)} too little`;
}

/** What would make each missing gate hold. */
export const GATE_ADVICE: Record<Gate, string> = {
  closed_period: 'Wait until the provider no longer restates these days, and fetch the bill again.',
  quantity_present:
    'Import a cost or usage report with quantities for these days: amounts alone prove little.',
  price_source_dated: 'Enter the price that held on these days with its date.',
  price_sources_agree:
    'A second source has to confirm the price: import another price list, or enter the rate of your contract.',
  classes_complete:
    'Let every call tell all its token classes and a model with a known price: some calls of these days do not.',
  coverage_or_sealed_scope:
    'Instrument the services whose calls are missing: less than 99 % of the usage was seen.',
  residual_within_tolerance:
    'A part of the difference is still without an explanation: look at the lines that remain.',
  odds_against_next:
    'Two explanations come close to each other: more days, or finer lines of the bill, tell them apart.',
  account_known:
    'Tell which account the calls belong to: name it in the events or register the provider keys.',
  evidence_needed: 'Evidence is missing that this kind of mistake needs: see docs/explanations.md.',
};

export const FINER_BILL =
  'Fetch the bill with quantities by model and class: with amounts alone the grade stays where it is.';

export const UNEXPLAINED =
  'No known mistake gives these amounts, and neither missing calls nor rounding account for them.';
