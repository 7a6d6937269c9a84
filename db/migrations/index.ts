import { rolesAndTenancy } from './0001_roles_and_tenancy.js';
import { events } from './0002_events.js';
import { prices } from './0003_prices.js';
import { billing } from './0004_billing.js';
import { gapRuns } from './0005_gap_runs.js';
import { outbox } from './0006_outbox.js';
import { billingConnections } from './0007_billing_connections.js';
import { ownPrices } from './0008_own_prices.js';
import { repricingAndClosing } from './0009_repricing_and_closing.js';
import { demo } from './0011_demo.js';
import { pageRetention } from './0012_page_retention.js';
import { keysAndWorkspaces } from './0013_keys_and_workspaces.js';
import { auditLog } from './0014_audit_log.js';
import { idempotency } from './0015_idempotency.js';
import { settingsAndRetention } from './0016_settings_and_retention.js';
import { rateLimits } from './0017_rate_limits.js';
import { workspaceReads } from './0018_workspace_reads.js';
import { auditHeads } from './0019_audit_heads.js';
import { policiesAndAlerts } from './0020_policies_and_alerts.js';
import { webhooks } from './0021_webhooks.js';
import { enforcementRules } from './0022_enforcement_rules.js';
import { modeledSavings } from './0023_modeled_savings.js';
import { promptHash } from './0024_prompt_hash.js';
import { findings } from './0025_findings.js';
import { runInputs } from './0026_run_inputs.js';
import { disputes } from './0027_disputes.js';
import { matches } from './0028_matches.js';
import { billingFormats } from './0029_billing_formats.js';
import { sourceDays } from './0030_source_days.js';
import { fetchedRates } from './0031_fetched_rates.js';
import { claims } from './0033_claims.js';
import { weightSets } from './0034_weight_sets.js';
import { creditRows } from './0035_credit_rows.js';
import { disputeAndClaimMessages } from './0036_dispute_and_claim_messages.js';
import { findingCauses } from './0037_finding_causes.js';
import { oneEventACall } from './0038_one_event_a_call.js';
import { statistics } from './0039_statistics.js';
import { heldFindings } from './0040_held_findings.js';
import { unpricedCounts } from './0041_unpriced_counts.js';
import { runEffects } from './0042_run_effects.js';
import { invoices } from './0043_invoices.js';
import { invoiceFindings } from './0044_invoice_findings.js';
import { chargebackSetting } from './0045_chargeback_setting.js';
import { reports } from './0046_reports.js';
import { branding } from './0047_branding.js';
import { notices } from './0048_notices.js';
import { sessions } from './0049_sessions.js';
import { demoRuns } from './0050_demo_runs.js';
import { priceProposals } from './0051_price_proposals.js';
import { observationRecords } from './0052_observation_records.js';
import { pairedReports } from './0053_paired_reports.js';
import { meteredUsage } from './0054_metered_usage.js';
import type { Migration } from './migration.js';

/**
 * The schema's steps in order: a static list, since names found by scanning a folder end in .ts here and in .js
 * when built, and a migration table would then call them changed.
 */
export const MIGRATIONS: readonly Migration[] = [
  rolesAndTenancy,
  events,
  prices,
  billing,
  gapRuns,
  outbox,
  billingConnections,
  ownPrices,
  repricingAndClosing,
  demo,
  pageRetention,
  keysAndWorkspaces,
  auditLog,
  idempotency,
  settingsAndRetention,
  rateLimits,
  workspaceReads,
  auditHeads,
  policiesAndAlerts,
  webhooks,
  enforcementRules,
  modeledSavings,
  promptHash,
  findings,
  runInputs,
  disputes,
  matches,
  billingFormats,
  sourceDays,
  fetchedRates,
  claims,
  weightSets,
  creditRows,
  disputeAndClaimMessages,
  findingCauses,
  oneEventACall,
  statistics,
  heldFindings,
  unpricedCounts,
  runEffects,
  invoices,
  invoiceFindings,
  chargebackSetting,
  reports,
  branding,
  notices,
  sessions,
  demoRuns,
  priceProposals,
  observationRecords,
  pairedReports,
  meteredUsage,
];
