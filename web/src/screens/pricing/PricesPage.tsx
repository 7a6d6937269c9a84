import type { ReactNode } from 'react';
import { query } from '../../api/client';
import { Page } from '../../parts/Page';
import { Tabs } from '../../parts/Tabs';

const PROPOSALS = '/prices/proposals';
const TABS = [
  { href: '/prices', name: 'List' },
  { href: '/prices/unpriced', name: 'Unpriced models' },
  { href: '/prices/overrides', name: 'Overrides' },
  { href: '/prices/contract-rates', name: 'Contract rates' },
  { href: PROPOSALS, name: 'Proposals' },
  { href: '/prices/repricing', name: 'Re-pricing' },
];

/** The frame of the screens of prices. */
export function PricesPage({
  actions,
  filters,
  children,
}: {
  actions?: ReactNode;
  filters?: ReactNode;
  children: ReactNode;
}) {
  const { data } = query.useQuery('get', '/api/v1/pricing/proposals', {
    params: { query: { status: 'open', limit: 1 } },
  });
  const open = data?.open ?? 0;
  const tabs = TABS.map((tab) =>
    tab.href === PROPOSALS && open > 0 ? { ...tab, name: `${tab.name} (${open})` } : tab,
  );
  return (
    <Page
      title="Prices"
      lead="US dollars per million tokens. A contract rate stands over an override, and an override over the list."
      actions={actions}
      tabs={<Tabs label="Prices" tabs={tabs} />}
      filters={filters}
    >
      {children}
    </Page>
  );
}
