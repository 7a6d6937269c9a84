import type { ReactNode } from 'react';
import { Page } from '../../parts/Page';
import { Tabs } from '../../parts/Tabs';

const TABS = [
  { href: '/reports', name: 'Reports' },
  { href: '/reports/schedules', name: 'Schedules' },
  { href: '/reports/branding', name: 'Branding' },
];

/** The frame of the screens of reports. */
export function ReportsPage({ children }: { children: ReactNode }) {
  return (
    <Page
      title="Reports"
      lead="A PDF for people who do not open the dashboard: what was spent, what was prevented, and what can be asked back."
      tabs={<Tabs label="Reports" tabs={TABS} />}
    >
      {children}
    </Page>
  );
}
