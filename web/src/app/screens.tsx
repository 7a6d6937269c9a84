import type { ComponentType } from 'react';
import Overview from '../screens/overview/Overview';
import { lazyPart } from './lazyPart';

/** One screen of the dashboard. Its code loads when it is first opened; the overview's comes with the frame. */
export interface Screen {
  /** Path, and a pattern of wouter where it has parameters. */
  path: string;
  /** Name in the navigation; a screen without one is reached from another. */
  name?: string;
  group?: string;
  /** Second key after g, for example g o. */
  shortcut?: string;
  /** Scope without which the navigation does not show the screen. */
  scope?: string;
  component: ComponentType;
}

/** Groups in the order of the navigation. */
export const GROUPS = ['', 'Overcharges', 'Bills', 'Calls', 'Control', 'Finance', 'Set up'] as const;

function screen(
  path: string,
  load: () => Promise<{ default: ComponentType }>,
  rest: Omit<Screen, 'path' | 'component'> = {},
): Screen {
  return { path, component: lazyPart(load, { isScreen: true }), ...rest };
}

export const SCREENS: readonly Screen[] = [
  { path: '/', component: Overview, name: 'Overview', group: '', shortcut: 'o' },
  screen('/gaps', () => import('../screens/reconciliation/gaps/GapExplorer'), {
    name: 'Gap explorer',
    group: 'Overcharges',
    shortcut: 'g',
    scope: 'reconciliation:read',
  }),
  screen('/review', () => import('../screens/claims/findings/Review'), {
    name: 'Review queue',
    group: 'Overcharges',
    shortcut: 'r',
    scope: 'financial:read',
  }),
  screen('/findings', () => import('../screens/claims/findings/Findings'), {
    name: 'Findings',
    group: 'Overcharges',
    scope: 'financial:read',
  }),
  screen('/findings/:id', () => import('../screens/claims/findings/FindingDetail')),
  screen('/claims', () => import('../screens/claims/Claims'), {
    name: 'Claims',
    group: 'Overcharges',
    shortcut: 'c',
    scope: 'claims:read',
  }),
  screen('/claims/:id', () => import('../screens/claims/ClaimDetail')),
  screen('/disputes', () => import('../screens/claims/disputes/Disputes'), {
    name: 'Disputes',
    group: 'Overcharges',
    shortcut: 'd',
    scope: 'financial:read',
  }),
  screen('/statement', () => import('../screens/reconciliation/statement/Statement'), {
    name: 'Statement',
    group: 'Bills',
    shortcut: 'b',
    scope: 'reconciliation:read',
  }),
  screen('/invoices', () => import('../screens/invoices/Invoices'), {
    name: 'Invoices',
    group: 'Bills',
    shortcut: 'i',
    scope: 'billing:read',
  }),
  screen('/invoices/prepaid', () => import('../screens/invoices/Prepaid')),
  screen('/invoices/:id', () => import('../screens/invoices/InvoiceDetail')),
  screen('/audit', () => import('../screens/reconciliation/audit/Audit'), {
    name: 'Audit of rates',
    group: 'Bills',
    shortcut: 'l',
    scope: 'reconciliation:read',
  }),
  screen('/periods', () => import('../screens/reconciliation/statement/Periods'), {
    name: 'Months',
    group: 'Bills',
    scope: 'usage:read',
  }),
  screen('/usage', () => import('../screens/usage/Usage'), {
    name: 'Usage',
    group: 'Calls',
    shortcut: 'u',
    scope: 'usage:read',
  }),
  screen('/events', () => import('../screens/usage/Events'), {
    name: 'Events',
    group: 'Calls',
    shortcut: 'e',
    scope: 'events:read',
  }),
  screen('/events/:id', () => import('../screens/usage/EventPage')),
  screen('/policies', () => import('../screens/policies/Policies'), {
    name: 'Policies',
    group: 'Control',
    shortcut: 'y',
    scope: 'policies:read',
  }),
  screen('/alerts', () => import('../screens/policies/alerts/Alerts'), {
    name: 'Alerts',
    group: 'Control',
    shortcut: 'a',
    scope: 'alerts:read',
  }),
  screen('/enforcement', () => import('../screens/policies/Enforcement'), {
    name: 'Enforcement',
    group: 'Control',
    shortcut: 'j',
    scope: 'enforcement:read',
  }),
  screen('/enforcement/savings', () => import('../screens/policies/Savings')),
  screen('/chargeback', () => import('../screens/reports/Chargeback'), {
    name: 'Chargeback',
    group: 'Finance',
    shortcut: 'k',
    scope: 'reports:read',
  }),
  screen('/reports', () => import('../screens/reports/Reports'), {
    name: 'Reports',
    group: 'Finance',
    shortcut: 'm',
    scope: 'reports:read',
  }),
  screen('/reports/schedules', () => import('../screens/reports/Schedules')),
  screen('/reports/branding', () => import('../screens/reports/Branding')),
  screen('/connections', () => import('../screens/billing/Connections'), {
    name: 'Connections',
    group: 'Set up',
    shortcut: 'n',
    scope: 'billing:read',
  }),
  screen('/connections/imports', () => import('../screens/billing/Imports')),
  screen('/connections/coverage', () => import('../screens/billing/Coverage')),
  screen('/connections/:id', () => import('../screens/billing/ConnectionDetail')),
  screen('/prices', () => import('../screens/pricing/Prices'), {
    name: 'Prices',
    group: 'Set up',
    shortcut: 'x',
    scope: 'pricing:read',
  }),
  screen('/prices/unpriced', () => import('../screens/pricing/Unpriced')),
  screen('/prices/overrides', () => import('../screens/pricing/Overrides')),
  screen('/prices/contract-rates', () => import('../screens/pricing/ContractRates')),
  screen('/prices/proposals', () => import('../screens/pricing/Proposals')),
  screen('/prices/repricing', () => import('../screens/pricing/Repricing')),
  screen('/first-call', () => import('../screens/events/FirstCall'), {
    name: 'First call',
    group: 'Set up',
  }),
  screen('/ingest-health', () => import('../screens/events/IngestHealth'), {
    name: 'Ingest health',
    group: 'Set up',
    shortcut: 'h',
    scope: 'events:read',
  }),
  screen('/settings', () => import('../screens/installation/Organization'), {
    name: 'Settings',
    group: 'Set up',
    shortcut: 's',
  }),
  screen('/settings/keys', () => import('../screens/access/Keys'), { scope: 'keys:admin' }),
  screen('/settings/workspaces', () => import('../screens/access/Workspaces')),
  screen('/settings/webhooks', () => import('../screens/webhooks/Webhooks'), { scope: 'webhooks:admin' }),
  screen('/settings/webhooks/:id', () => import('../screens/webhooks/WebhookDetail'), {
    scope: 'webhooks:admin',
  }),
  screen('/settings/sessions', () => import('../screens/access/Sessions')),
  screen('/settings/audit-log', () => import('../screens/access/AuditLog')),
];
