import { useMay } from '../../app/session';
import { Tabs } from '../../parts/Tabs';

const TABS = [
  { href: '/settings', name: 'Organization', scope: 'usage:read' },
  { href: '/settings/keys', name: 'Keys', scope: 'keys:admin' },
  { href: '/settings/workspaces', name: 'Workspaces', scope: 'workspaces:read' },
  { href: '/settings/webhooks', name: 'Notifications', scope: 'webhooks:admin' },
  { href: '/settings/sessions', name: 'Sessions', scope: undefined },
  { href: '/settings/audit-log', name: 'Audit log', scope: 'audit:read' },
];

/** The settings that this session may see. */
export function SettingsTabs() {
  const may = useMay();
  return <Tabs label="Settings" tabs={TABS.filter(({ scope }) => may(scope ? { scope } : {}))} />;
}
