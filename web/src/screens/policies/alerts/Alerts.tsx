import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { Link, useLocation } from 'wouter';
import { api, errorText, query } from '../../../api/client';
import { useFilter, withQuery } from '../../../app/filters';
import { count, time } from '../../../app/format';
import { useMay } from '../../../app/session';
import { type Column, DataTable } from '../../../parts/DataTable';
import { Button, ButtonLink } from '../../../parts/forms/Button';
import { DateField } from '../../../parts/forms/DateField';
import { TextField } from '../../../parts/forms/Fields';
import { ClearFilters, FilterSelect } from '../../../parts/forms/Filters';
import { Money } from '../../../parts/Money';
import { Chip, Page } from '../../../parts/Page';
import { PAGE_ROWS, Pager, useOffset } from '../../../parts/Pager';
import { Empty, ErrorState, Loading } from '../../../parts/States';
import { useToast } from '../../../parts/Toasts';
import { POLICIES } from '../policyWords';
import { AlertDetail } from './AlertDetail';
import { type Alert, alertName, SEVERITY } from './alertWords';

const PATH = '/api/v1/alerts';

export default function Alerts() {
  const mayWrite = useMay()({ scope: 'alerts:write' });
  const [, go] = useLocation();
  const [status, setStatus] = useFilter<Alert['status'] | ''>('status', '');
  const [severity, setSeverity] = useFilter<Alert['severity'] | ''>('severity', '');
  const [kind, setKind] = useFilter<Alert['kind'] | ''>('kind', '');
  const [policy, setPolicy] = useFilter<NonNullable<Alert['policy_type']> | ''>('policy_type', '');
  const [model, setModel] = useFilter<string>('model', '');
  const [since, setSince] = useFilter<string>('since', '');
  const [until, setUntil] = useFilter<string>('until', '');
  const [openId, setOpenId] = useFilter<string>('id', '');
  const offset = useOffset();
  const filters = Object.fromEntries(
    Object.entries({ status, severity, kind, policy_type: policy, model, since, until }).filter(
      ([, value]) => value !== '',
    ),
  );
  const alerts = query.useQuery(
    'get',
    PATH,
    { params: { query: { ...filters, limit: PAGE_ROWS, offset } } },
    { placeholderData: (before) => before },
  );
  const acknowledge = useAcknowledge();
  const isFiltered = Object.keys(filters).length > 0;
  const rows = alerts.data?.alerts ?? [];
  const open = rows.filter((alert) => alert.status === 'open');
  return (
    <Page
      title="Alerts"
      lead="Calls that broke a policy, and notices of the service about itself."
      actions={
        <>
          {mayWrite && open.length > 1 && (
            <Button isPending={acknowledge.isBusy} onPress={() => void acknowledge.all(open)}>
              {acknowledge.isBusy ? 'One moment …' : `Acknowledge these ${count(open.length)}`}
            </Button>
          )}
          <ButtonLink href="/policies">Policies</ButtonLink>
        </>
      }
      filters={
        <>
          <FilterSelect
            label="Status"
            value={status}
            onChange={setStatus}
            options={[
              { value: 'open', label: 'Open' },
              { value: 'acknowledged', label: 'Acknowledged' },
            ]}
          />
          <FilterSelect
            label="Severity"
            value={severity}
            onChange={setSeverity}
            options={[
              { value: 'high', label: 'High' },
              { value: 'medium', label: 'Medium' },
              { value: 'low', label: 'Low' },
            ]}
          />
          <FilterSelect
            label="Kind"
            value={kind}
            onChange={setKind}
            options={[
              { value: 'policy', label: 'Policy' },
              { value: 'notice', label: 'Notice' },
            ]}
          />
          <FilterSelect
            label="Policy"
            value={policy}
            onChange={setPolicy}
            options={POLICIES.map(({ type, name }) => ({ value: type, label: name }))}
          />
          <TextField label="Model" value={model} onChange={setModel} />
          <DateField label="From (UTC)" value={since.slice(0, 10)} onChange={setSince} />
          <DateField label="To (UTC)" value={until.slice(0, 10)} onChange={setUntil} />
          {isFiltered && <ClearFilters onPress={() => go('/alerts')} />}
        </>
      }
    >
      {alerts.isPending ? (
        <Loading />
      ) : alerts.error ? (
        <ErrorState error={alerts.error} retry={() => void alerts.refetch()} />
      ) : rows.length > 0 ? (
        <DataTable
          caption="Alerts, newest first"
          columns={columnsOf(mayWrite ? acknowledge : undefined)}
          rows={rows}
          rowKey={({ id }) => id}
          rowLabel={({ message }) => `Open alert: ${message}`}
          selectedKey={openId}
          onOpen={({ id }) => setOpenId(id)}
          csv={withQuery(PATH, { ...filters, format: 'csv' })}
          more={<Pager page={alerts.data} />}
        />
      ) : status === 'open' && Object.keys(filters).length === 1 ? (
        <Empty title="No open alerts">
          <p>Every alert is acknowledged.</p>
        </Empty>
      ) : isFiltered ? (
        <Empty title="No alert matches">
          <Button onPress={() => go('/alerts')}>Clear filters</Button>
        </Empty>
      ) : (
        <Empty title="No alerts yet">
          <p>
            An alert appears when a call breaks a policy, or when the service has something to report about
            itself, such as a connection that fails.
          </p>
          <ButtonLink href="/policies">Set policies</ButtonLink>
        </Empty>
      )}
      <AlertDetail
        id={openId}
        onClose={() => setOpenId('')}
        acknowledge={mayWrite ? acknowledge : undefined}
      />
    </Page>
  );
}

export interface Acknowledge {
  isBusy: boolean;
  all: (alerts: readonly Alert[]) => Promise<void>;
}

/** Acknowledges alerts one after another, so that a failure leaves the rest open. */
function useAcknowledge(): Acknowledge {
  const client = useQueryClient();
  const toast = useToast();
  const [isBusy, setIsBusy] = useState(false);
  const all = async (alerts: readonly Alert[]) => {
    setIsBusy(true);
    let done = 0;
    try {
      for (const { id } of alerts) {
        const { error } = await api.POST('/api/v1/alerts/{id}/acknowledge', { params: { path: { id } } });
        if (error) throw error;
        done += 1;
      }
      toast(done === 1 ? 'The alert is acknowledged.' : `${count(done)} alerts are acknowledged.`);
    } catch (error) {
      toast(`${done > 0 ? `${count(done)} alerts are acknowledged. ` : ''}${errorText(error)}`, 'bad');
    } finally {
      setIsBusy(false);
      await Promise.all([
        client.invalidateQueries({ queryKey: ['get', PATH] }),
        client.invalidateQueries({ queryKey: ['get', `${PATH}/{id}`] }),
        client.invalidateQueries({ queryKey: ['get', '/api/v1/financial/review-queue'] }),
      ]);
    }
  };
  return { isBusy, all };
}

function columnsOf(acknowledge: Acknowledge | undefined): Column<Alert>[] {
  return [
    { id: 'message', head: 'Alert', isWide: true, cell: ({ message }) => message },
    {
      id: 'severity',
      head: 'Severity',
      cell: ({ severity }) => <Chip kind={SEVERITY[severity].kind}>{SEVERITY[severity].label}</Chip>,
    },
    { id: 'kind', head: 'Policy or notice', cell: alertName },
    { id: 'team', head: 'Team', cell: ({ team_id }) => team_id ?? '–' },
    {
      id: 'cost',
      head: 'Cost of the call',
      isNumber: true,
      cell: ({ cost_usd }) => <Money usd={cost_usd} />,
    },
    {
      id: 'call',
      head: 'Call',
      cell: ({ event_id, event_timestamp }) =>
        event_id ? (
          <Link href={`/events/${event_id}`}>{event_timestamp ? time(event_timestamp) : event_id}</Link>
        ) : (
          '–'
        ),
    },
    {
      id: 'status',
      head: 'Status',
      cell: (alert) =>
        alert.status === 'acknowledged' ? (
          <Chip>Acknowledged</Chip>
        ) : acknowledge ? (
          <Button
            kind="quiet"
            isPending={acknowledge.isBusy}
            aria-label={`Acknowledge: ${alert.message}`}
            onPress={() => void acknowledge.all([alert])}
          >
            Acknowledge
          </Button>
        ) : (
          <Chip kind="accent">Open</Chip>
        ),
    },
  ];
}
