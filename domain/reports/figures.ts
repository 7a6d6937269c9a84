import type { FinancialSummary } from '../claims/financialSummary.js';
import type { ClaimStatus } from '../claims/lifecycle.js';
import type { Pico } from '../money.js';
import type { AlertStatus, Severity } from '../policies/alert.js';
import type { PolicyType } from '../policies/policy.js';
import type { Grade } from '../reconciliation/matching/cells.js';
import type { Allocation, Chargeback } from '../usage/chargeback.js';
import type { ReportPeriod } from './report.js';

/** Everything that a report shows, exact and from one snapshot; the API answers the same for the same period. */
export interface ReportFigures {
  period: ReportPeriod;
  previous: ReportPeriod;
  /** When the snapshot was taken. */
  asOfMicros: bigint;
  spend: SpendFigures;
  violations: ViolationFigures;
  enforcement: EnforcementFigures;
  reconciliation: ReconciliationFigures;
}

export interface SpendSums {
  calls: number;
  inputTokens: number;
  outputTokens: number;
  cacheRead: number;
  cacheCreation: number;
  costPico: Pico;
  /** Calls whose cost is not known; they add nothing. */
  unpriced: number;
}

export interface SpendGroup extends SpendSums {
  /** '' for calls without a value. */
  key: string;
}

/** Sums and their groups, by cost; groups that are not listed are in the totals alone. */
export interface SpendBy {
  totals: SpendSums;
  groups: readonly SpendGroup[];
}

export interface SpendFigures {
  models: SpendBy;
  previousModels: SpendBy;
  days: SpendBy;
  previousDays: SpendBy;
  chargeback: ChargebackFigures;
  /** Amounts that came after their month was closed and are booked in this period; null where that cannot be. */
  adjustmentsPico: Pico | null;
}

/** By team; buckets' whole cents sum to the total. */
export type ChargebackFigures = Pick<Chargeback, 'buckets' | 'totalCents' | 'allocated'> & {
  allocation: Allocation;
};

/** Alerts that count as the same. */
export interface AlertSum {
  /** UTC day on which they were made. */
  day: string;
  /** Null: a notice. */
  policyType: PolicyType | null;
  /** Null: of a policy. */
  notice: string | null;
  severity: Severity;
  status: AlertStatus;
  alerts: number;
  /** Of their calls, as it stood when they were made. */
  costPico: Pico;
}

export interface ViolationFigures {
  alerts: readonly AlertSum[];
  previousAlerts: number;
  policies: readonly { type: PolicyType; enabled: boolean }[];
}

export interface PreventedRule {
  name: string;
  calls: number;
  preventedPico: Pico;
}

export interface EnforcementFigures {
  calls: number;
  callsWithoutAmount: number;
  preventedPico: Pico;
  /** The most prevented first; they sum to the total. */
  rules: readonly PreventedRule[];
  previousPreventedPico: Pico;
  /** Rules that are switched on, by what they do. */
  blocking: number;
  observing: number;
  modeled: ModeledFigures | null;
}

/** The modeled savings of the rules, by the newest run over `period`. */
export interface ModeledFigures {
  /** Half-open. */
  fromMicros: bigint;
  toMicros: bigint;
  /** Of the report's own period; else of the last 30 days. */
  isOfPeriod: boolean;
  asOfMicros: bigint;
  savedPico: Pico;
  rules: readonly { name: string; calls: number; savedPico: Pico }[];
}

export interface ReconciliationFigures {
  billedPico: Pico;
  matchedByGrade: Partial<Record<Grade, Pico>>;
  summary: FinancialSummary;
  /** Over days of the period, newest first. */
  claims: readonly ReportedClaim[];
}

export interface ReportedClaim {
  provider: string;
  accountId: string;
  periodStart: string;
  periodEnd: string;
  status: ClaimStatus;
  recoverableCents: bigint;
  creditIssuedCents: bigint | null;
}
