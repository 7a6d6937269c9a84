import type { ReactNode } from 'react';
import { Page } from '../../parts/Page';
import { Tabs } from '../../parts/Tabs';

const TABS = [
  { href: '/enforcement', name: 'Rules' },
  { href: '/enforcement/savings', name: 'Savings' },
];

/** The frame of the screens of enforcement. */
export function EnforcementPage({ actions, children }: { actions?: ReactNode; children: ReactNode }) {
  return (
    <Page
      title="Enforcement"
      lead="Rules that the wrappers of SDKs apply before a call is sent. The first rule that a call breaks counts."
      actions={actions}
      tabs={<Tabs label="Enforcement" tabs={TABS} />}
    >
      {children}
    </Page>
  );
}
