import type { ReactNode } from 'react';
import { Page } from '../../parts/Page';
import { Tabs } from '../../parts/Tabs';

const TABS = [
  { href: '/prices', name: 'List' },
  { href: '/prices/unpriced', name: 'Unpriced models' },
  { href: '/prices/overrides', name: 'Overrides' },
  { href: '/prices/contract-rates', name: 'Contract rates' },
  { href: '/prices/repricing', name: 'Re-pricing' },
];

/** What the screens of prices share. */
export function PricesPage({ actions, children }: { actions?: ReactNode; children: ReactNode }) {
  return (
    <Page
      title="Prices"
      lead="US dollars per million tokens. A contract rate stands over an override, and an override over the list."
      actions={actions}
      filters={<Tabs label="Prices" tabs={TABS} />}
    >
      {children}
    </Page>
  );
}
