import { useState } from 'react';
import { Link, useParams } from 'wouter';
import { query } from '../../api/client';
import { percent, time } from '../../app/format';
import { providerName } from '../../app/providers';
import { Card, Chip, Facts, Grid, Page } from '../../parts/Page';
import { RunProgress } from '../../parts/RunProgress';
import { Empty, ErrorState, Loading, Notice } from '../../parts/States';
import { BilledTwice } from './BilledTwice';
import { EditLine } from './EditLine';
import css from './Invoice.module.css';
import { InvoiceActions } from './InvoiceActions';
import { Lines } from './Lines';
import { boxesOf, PageView } from './PageView';
import { Sums, TieOut } from './Sums';
import { ENGINE, type Invoice, type InvoiceLine, isBilledTwice, isWorking, REASON, STATUS } from './words';

const POLL_MS = 1_500;

export default function InvoiceDetail() {
  const { id } = useParams<{ id: string }>();
  const invoice = query.useQuery(
    'get',
    '/api/v1/reconciliation/invoices/{id}',
    { params: { path: { id } } },
    { refetchInterval: ({ state }) => (state.data && isWorking(state.data) ? POLL_MS : false) },
  );
  if (invoice.isPending) return <Loading />;
  if (invoice.error) return <ErrorState error={invoice.error} retry={() => void invoice.refetch()} />;
  return <Whole key={id} invoice={invoice.data} />;
}

function Whole({ invoice }: { invoice: Invoice }) {
  const [page, setPage] = useState(1);
  const [active, setActive] = useState<number>();
  const [open, setOpen] = useState<number>();
  const activate = (line: InvoiceLine | undefined) => {
    setActive(line?.line);
    const box = line && boxesOf(line)[0];
    if (box) setPage(box.page);
  };
  const { label, kind } = STATUS[invoice.status];
  return (
    <Page
      title={invoice.number ? `Invoice ${invoice.number}` : invoice.filename}
      lead={
        <>
          <Link href="/invoices">Invoices</Link> · {providerName(invoice.provider)} ·{' '}
          <Chip kind={kind}>{label}</Chip>{' '}
          {invoice.status === 'needs_review' &&
            (isBilledTwice(invoice)
              ? 'its days are billed twice'
              : invoice.review_reasons.map((reason) => REASON[reason]).join(', '))}
        </>
      }
      actions={<InvoiceActions invoice={invoice} />}
    >
      <Notices invoice={invoice} />
      <HeadFields invoice={invoice} />
      {invoice.fields && (
        <Grid min={420}>
          <Sums invoice={invoice} />
          <TieOut invoice={invoice} />
        </Grid>
      )}
      <div className={css.split}>
        <PageView
          invoice={invoice}
          page={page}
          onPage={setPage}
          active={active}
          onActive={setActive}
          onChoose={setOpen}
        />
        <div className={css.column}>
          {invoice.lines.length > 0 ? (
            <Lines
              invoice={invoice}
              active={active}
              onActive={activate}
              onOpen={({ line }) => setOpen(line)}
            />
          ) : (
            <Empty
              title={isWorking(invoice) ? 'The lines appear here once they are read' : 'No lines were read'}
            />
          )}
        </div>
      </div>
      <EditLine
        invoice={invoice}
        line={invoice.lines.find(({ line }) => line === open)}
        onClose={() => setOpen(undefined)}
      />
    </Page>
  );
}

function Notices({ invoice }: { invoice: Invoice }) {
  return (
    <>
      {isWorking(invoice) &&
        (invoice.run ? (
          <RunProgress label="Reading the invoice" progress={invoice.run.progress} />
        ) : (
          <Notice>The invoice waits to be read.</Notice>
        ))}
      {invoice.status === 'failed' && (
        <Notice kind="bad">
          The invoice could not be read: {invoice.failure_message ?? 'the reason is unknown'}. Try again or
          upload another file.
        </Notice>
      )}
      {isBilledTwice(invoice) && <BilledTwice invoice={invoice} />}
      {invoice.duplicate_of && (
        <Notice kind="warn">
          The same invoice was uploaded before as another file.{' '}
          <Link href={`/invoices/${invoice.duplicate_of}`}>The first file</Link> counts; this one is compared
          with nothing.
        </Notice>
      )}
      {invoice.replaced_by && (
        <Notice kind="warn">
          <Link href={`/invoices/${invoice.replaced_by}`}>Another invoice</Link> replaces this one and counts
          instead.
        </Notice>
      )}
      {invoice.replaces && <Notice>This document replaces invoice {invoice.replaces}.</Notice>}
      {invoice.confirmed && (
        <Notice>
          {invoice.confirmed.by} confirmed {time(invoice.confirmed.at)} that the reading is right and the
          document itself is wrong{invoice.confirmed.note ? `: “${invoice.confirmed.note}”` : '.'}
        </Notice>
      )}
    </>
  );
}

function HeadFields({ invoice }: { invoice: Invoice }) {
  const { fields } = invoice;
  const certain = (field: { confidence: number; text: string } | null | undefined) =>
    field && field.confidence < 1 ? (
      <span className={css.muted} title={`read as “${field.text}”`}>
        {' '}
        {percent(field.confidence, 0)}
      </span>
    ) : null;
  return (
    <Card>
      <Facts
        items={[
          [
            'Issuer',
            <>
              {invoice.issuer ?? '–'}
              {certain(fields?.issuer)}
            </>,
          ],
          [
            'Account',
            <>
              {invoice.provider_account_id ?? invoice.account ?? '–'}
              {certain(fields?.account)}
            </>,
          ],
          [
            'Issued',
            <>
              {invoice.issue_date ?? '–'}
              {certain(fields?.issue_date)}
            </>,
          ],
          [
            'Due',
            <>
              {invoice.due_date ?? '–'}
              {certain(fields?.due_date)}
            </>,
          ],
          [
            'Period',
            <>
              {invoice.period_start ? `${invoice.period_start} – ${invoice.period_end}` : '–'}
              {certain(fields?.period_start)}
            </>,
          ],
          [
            'Currency',
            <>
              {invoice.currency ?? '–'}
              {certain(fields?.currency)}
            </>,
          ],
          ['Read by', invoice.engine ? ENGINE[invoice.engine] : '–'],
          [
            'Lowest confidence of an amount',
            invoice.extraction_confidence === null ? '–' : percent(invoice.extraction_confidence, 0),
          ],
          ['Uploaded', time(invoice.created_at)],
        ]}
      />
    </Card>
  );
}
