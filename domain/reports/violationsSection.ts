import { numberColumn, textColumn } from '../claims/evidence/documentRates.js';
import { counted, words } from '../claims/evidence/documentTexts.js';
import { footCents } from '../footing.js';
import type { Severity } from '../policies/alert.js';
import { POLICY_TYPES, type PolicyType } from '../policies/policy.js';
import type { AlertSum, ReportFigures } from './figures.js';
import { grainOf, partsOfPeriod } from './report.js';
import {
  asOfText,
  beforeText,
  centsOfWhole,
  comparisonText,
  countText,
  type DocumentSection,
  moneyText,
  partLabel,
  periodText,
  type SectionTable,
  sumOf,
} from './sectionParts.js';
import { GRAIN_NOUNS } from './spendSection.js';

const POLICY_NAMES: Readonly<Record<PolicyType, string>> = {
  approved_models: 'Approved models',
  banned_patterns: 'Banned patterns',
  key_environment_check: 'Production keys in other environments',
  approval_required_threshold_cents: 'Calls above the approval threshold',
};

const SHOWN_SEVERITIES: readonly Severity[] = ['high', 'medium', 'low'];

export const alertsIn = (alerts: readonly AlertSum[]): number =>
  alerts.reduce((sum, one) => sum + one.alerts, 0);

const openIn = (alerts: readonly AlertSum[]): number =>
  alertsIn(alerts.filter(({ status }) => status === 'open'));

/** Alerts of the period, by policy and as notices. */
export function violationsSection(figures: ReportFigures): DocumentSection {
  const { period, violations, asOfMicros } = figures;
  const { alerts, policies, previousAlerts } = violations;
  const total = alertsIn(alerts);
  const enabled = policies.filter((policy) => policy.enabled).length;
  const inForce =
    enabled === 0
      ? 'No policy is switched on, so no call is compared with one.'
      : `${counted(enabled, 'policy').replace('policys', 'policies')} ${enabled === 1 ? 'is' : 'are'} switched on.`;
  const common = {
    key: 'violations' as const,
    title: 'Violations',
    sources: `Sources: the feed of alerts, by the time at which they were made, and the policies in force, ${asOfText(asOfMicros)}.`,
  };
  if (total === 0)
    return {
      ...common,
      isEmpty: true,
      sentences: [
        `No alert was raised in this period${previousAlerts === 0 ? '' : `; ${beforeText(period)} there were ${countText(previousAlerts)}`}. ${inForce}`,
      ],
      chart: null,
      tables: [],
    };
  const high = alertsIn(alerts.filter(({ severity }) => severity === 'high'));
  const open = openIn(alerts);
  const compared = comparisonText(BigInt(total), BigInt(previousAlerts), period, countText);
  return {
    ...common,
    isEmpty: false,
    sentences: [
      `${counted(total, 'alert')} ${total === 1 ? 'was' : 'were'} raised, ${compared}. ${countText(high)} ${high === 1 ? 'is' : 'are'} of high severity, and ${countText(open)} ${open === 1 ? 'is' : 'are'} still open.`,
      inForce,
    ],
    chart: alertChart(figures),
    tables: [policyTable(figures), ...noticeTable(alerts)],
  };
}

function alertChart({ period, violations }: ReportFigures): DocumentSection['chart'] {
  const parts = partsOfPeriod(period);
  if (parts.length < 2) return null;
  const grain = GRAIN_NOUNS[grainOf(period)];
  const series = SHOWN_SEVERITIES.filter((one) => violations.alerts.some(({ severity }) => severity === one));
  return {
    title: `Alerts by ${grain} and severity`,
    alt: `Stacked columns: alerts by ${grain} and severity, ${periodText(period)}; ${countText(alertsIn(violations.alerts))} in all. The tables below have the numbers.`,
    drawing: {
      kind: 'columns',
      unit: 'count',
      series: series.map((one) => `${words(one)} severity`),
      points: parts.map((part) => ({
        label: partLabel(part, period),
        values: series.map((one) =>
          alertsIn(
            violations.alerts.filter(
              ({ severity, day }) => severity === one && day >= part.fromDay && day <= part.toDay,
            ),
          ),
        ),
      })),
    },
  };
}

function policyTable({ violations: { alerts, policies } }: ReportFigures): SectionTable {
  const ofPolicies = alerts.filter(({ policyType }) => policyType !== null);
  const shown = POLICY_TYPES.filter(
    (type) =>
      policies.some((policy) => policy.type === type) ||
      ofPolicies.some(({ policyType }) => policyType === type),
  );
  const costs = shown.map((type) =>
    sumOf(ofPolicies.filter(({ policyType }) => policyType === type).map(({ costPico }) => costPico)),
  );
  const { partsPico, totalPico } = footCents(costs);
  const row = (name: string, state: string, of: readonly AlertSum[], cents: bigint) => [
    name,
    state,
    countText(alertsIn(of)),
    countText(alertsIn(of.filter(({ severity }) => severity === 'high'))),
    countText(openIn(of)),
    moneyText(cents),
  ];
  return {
    title: 'Policies',
    note: 'Cost is that of the calls that raised the alerts, as it stood then; a call that breaks two policies is in two rows.',
    table: {
      columns: [
        textColumn('Policy'),
        textColumn('State'),
        ...['Alerts', 'High', 'Open', 'Cost of the calls'].map(numberColumn),
      ],
      rows: shown.map((type, at) => {
        const policy = policies.find((one) => one.type === type);
        const state = policy ? (policy.enabled ? 'on' : 'off') : 'not set';
        const of = ofPolicies.filter(({ policyType }) => policyType === type);
        return row(POLICY_NAMES[type], state, of, centsOfWhole(partsPico[at] ?? 0n));
      }),
      total: row('Total', '', ofPolicies, centsOfWhole(totalPico)),
    },
  };
}

function noticeTable(alerts: readonly AlertSum[]): SectionTable[] {
  const notices = alerts.filter(({ notice }) => notice !== null);
  if (notices.length === 0) return [];
  const codes = [...new Set(notices.map(({ notice }) => notice ?? ''))].sort();
  const row = (name: string, of: readonly AlertSum[]) => [
    name,
    countText(alertsIn(of)),
    countText(openIn(of)),
  ];
  return [
    {
      title: 'Notices',
      note: '',
      table: {
        columns: [textColumn('Notice'), ...['Alerts', 'Open'].map(numberColumn)],
        rows: codes.map((code) =>
          row(
            words(code),
            notices.filter(({ notice }) => notice === code),
          ),
        ),
        total: row('Total', notices),
      },
    },
  ];
}
