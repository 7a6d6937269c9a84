import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api, type components, query, toFormData } from '../../api/client';
import { useFilter, withQuery } from '../../app/filters';
import { count, time } from '../../app/format';
import { providerName } from '../../app/providers';
import { useMay } from '../../app/session';
import { DataTable } from '../../parts/DataTable';
import { Button } from '../../parts/forms/Button';
import { Select } from '../../parts/forms/Fields';
import { FileDrop } from '../../parts/forms/FileDrop';
import { ProviderFilter } from '../../parts/forms/Filters';
import { Modal } from '../../parts/forms/Modal';
import { UploadForm } from '../../parts/forms/UploadForm';
import { Amount, Money } from '../../parts/Money';
import { Chip, Page } from '../../parts/Page';
import { PAGE_ROWS, Pager, useOffset } from '../../parts/Pager';
import { RunProgress } from '../../parts/RunProgress';
import { Empty, ErrorState, Loading } from '../../parts/States';
import { Tabs } from '../../parts/Tabs';
import { useToast } from '../../parts/Toasts';
import { TABS } from './connectors';

const PATH = '/api/v1/billing-imports';
const POLL_MS = 1_500;

type Import = components['schemas']['BillingImport'];
const isOpenRun = ({ status }: Import) => status === 'queued' || status === 'running';

export default function Imports() {
  const mayWrite = useMay()({ scope: 'billing:write' });
  const [provider, setProvider] = useFilter<string>('provider', '');
  const [file, setFile] = useState<File>();
  const offset = useOffset();
  const imports = query.useQuery(
    'get',
    PATH,
    { params: { query: { ...(provider ? { provider } : {}), limit: PAGE_ROWS, offset } } },
    { refetchInterval: ({ state }) => (state.data?.imports.some(isOpenRun) ? POLL_MS : false) },
  );
  return (
    <Page
      title="Bill files"
      lead="Bills that a provider offers as a file: exports, cost reports, invoices as data, or a plain CSV."
      tabs={<Tabs label="Sources of bills" tabs={TABS} />}
      filters={<ProviderFilter value={provider} onChange={setProvider} />}
    >
      {mayWrite && (
        <FileDrop
          label="or drop a bill here: CSV, JSON, Parquet, compressed or not"
          button="Upload a bill"
          accept={['.csv', '.json', '.jsonl', '.ndjson', '.gz', '.zip', '.parquet']}
          onFile={setFile}
        />
      )}
      {imports.isPending ? (
        <Loading />
      ) : imports.error ? (
        <ErrorState error={imports.error} retry={() => void imports.refetch()} />
      ) : imports.data.imports.length === 0 ? (
        provider ? (
          <Empty title={`No bill file of ${providerName(provider)}`}>
            <Button onPress={() => setProvider('')}>Clear filters</Button>
          </Empty>
        ) : (
          <Empty title="No bill files yet">
            <p>
              Upload a bill and its rows are compared with your calls. The same file is never counted twice.
            </p>
          </Empty>
        )
      ) : (
        <DataTable
          caption="Bill files, newest first"
          csv={withQuery(PATH, { provider, format: 'csv' })}
          rows={imports.data.imports}
          rowKey={({ id }) => id}
          more={<Pager page={imports.data} />}
          columns={[
            { id: 'file', head: 'File', isWide: true, cell: (one) => <FileCell of={one} /> },
            { id: 'provider', head: 'Provider', cell: (one) => providerName(one.provider) },
            { id: 'status', head: 'Status', isWide: true, cell: (one) => <StatusCell of={one} /> },
            {
              id: 'period',
              head: 'Period',
              cell: (one) => (one.period_start ? `${one.period_start} – ${one.period_end}` : '–'),
            },
            {
              id: 'rows',
              head: 'Rows',
              isNumber: true,
              cell: ({ rows }) => (rows === null ? '–' : count(rows)),
            },
            { id: 'amount', head: 'Amount', isNumber: true, cell: (one) => <Money usd={one.amount_usd} /> },
          ]}
        />
      )}
      <Modal title="Upload a bill" isOpen={file !== undefined} onClose={() => setFile(undefined)}>
        {file && <BillForm file={file} onClose={() => setFile(undefined)} />}
      </Modal>
    </Page>
  );
}

function FileCell({ of: { filename, created_at, provider_account_id } }: { of: Import }) {
  return (
    <>
      {filename}
      <div style={{ color: 'var(--muted)', fontSize: '0.75rem' }}>
        {time(created_at)}
        {provider_account_id && ` · ${provider_account_id}`}
      </div>
    </>
  );
}

function StatusCell({ of: one }: { of: Import }) {
  if (isOpenRun(one)) return <RunProgress label={one.filename} progress={{ ...one.progress, total: 0 }} />;
  return (
    <>
      <Chip kind={one.status === 'succeeded' ? 'good' : one.status === 'failed' ? 'bad' : 'warn'}>
        {one.status}
      </Chip>{' '}
      {one.error?.message}
      {one.unparsed.map(({ label, rows, amount_usd }) => (
        <p key={label}>
          Unknown label “{label}”: {count(rows)} rows, <Money usd={amount_usd} />
        </p>
      ))}
      {one.unconverted.map(({ currency, rows, amount }) => (
        <p key={currency}>
          No exchange rate: {count(rows)} rows, <Amount value={amount} currency={currency} />
        </p>
      ))}
      {one.left_out.map(({ charge_category, currency, rows, amount }) => (
        <p key={`${charge_category} ${currency}`}>
          Other services left out ({charge_category}): {count(rows)} rows,{' '}
          <Amount value={amount} currency={currency} />
        </p>
      ))}
    </>
  );
}

type Format = NonNullable<components['schemas']['BillingImportForm']['format']>;

const FORMATS: { value: Format | ''; label: string }[] = [
  { value: '', label: 'Found from the content' },
  { value: 'openai_pages', label: 'OpenAI cost or usage report' },
  { value: 'anthropic_pages', label: 'Anthropic cost or usage report' },
  { value: 'aws_ce_pages', label: 'AWS Cost Explorer' },
  { value: 'aws_cur2', label: 'AWS Cost and Usage Report 2.0' },
  { value: 'aws_cur_legacy', label: 'AWS Cost and Usage Report' },
  { value: 'azure_query_pages', label: 'Azure cost query' },
  { value: 'azure_cost_details', label: 'Azure cost details' },
  { value: 'google_billing_export', label: 'Google billing export' },
  { value: 'focus', label: 'FOCUS' },
  { value: 'xai_invoices', label: 'xAI invoices' },
  { value: 'mistral_usage', label: 'Mistral usage' },
  { value: 'plain_csv', label: 'Plain CSV' },
];

function BillForm({ file, onClose }: { file: File; onClose: () => void }) {
  const client = useQueryClient();
  const toast = useToast();
  const [format, setFormat] = useState<Format | ''>('');
  return (
    <UploadForm
      file={file}
      onClose={onClose}
      words={{
        provider: 'Provider',
        accountHelp: 'Needed where the file does not name the account.',
        rate: 'US dollars for one unit of the file’s currency (optional)',
        rateHelp: 'Needed for a bill in another currency, for example 1.0842.',
      }}
      send={async (body) => {
        const answer = await api.POST(PATH, {
          body: { ...body, format: format || undefined },
          bodySerializer: toFormData,
        });
        if (answer.error) return answer.error;
        await client.invalidateQueries({ queryKey: ['get', PATH] });
        toast(
          answer.data.existing
            ? 'The same file was imported before.'
            : 'The bill is uploaded and is being read.',
        );
        onClose();
      }}
    >
      <Select label="Format" value={format} options={FORMATS} onChange={setFormat} />
    </UploadForm>
  );
}
