import { type ReactNode, useEffect, useRef, useState } from 'react';
import { useLocation } from 'wouter';
import { query } from '../../../api/client';
import { useFilter, withQuery } from '../../../app/filters';
import { count } from '../../../app/format';
import { kindName } from '../../../app/kinds';
import { providerName } from '../../../app/providers';
import { useMay } from '../../../app/session';
import { exactSum } from '../../../parts/exactSum';
import { Button, ButtonLink, DownloadLink } from '../../../parts/forms/Button';
import { Select } from '../../../parts/forms/Fields';
import { ClearFilters, ProviderFilter } from '../../../parts/forms/Filters';
import { Money } from '../../../parts/Money';
import { Page } from '../../../parts/Page';
import { Empty, ErrorState, Loading, Notice } from '../../../parts/States';
import { useToast } from '../../../parts/Toasts';
import { daysOf } from '../words';
import { DismissDialog } from './DismissDialog';
import css from './Review.module.css';
import { ReviewCard } from './ReviewCard';
import { useChosenItem } from './useChosenItem';
import { useDecision } from './useDecision';
import { useTriageKeys } from './useTriageKeys';
import { type ReviewItem, STATUS } from './words';

const PATH = '/api/v1/financial/review-queue';
const ROWS_MAX = 200;
/** Other people decide on the same items. */
const POLL_MS = 15_000;

interface Decided {
  id: string;
  kind: 'confirmed' | 'dismissed';
  impact: string;
  disputeId?: string;
}

/** The queue of findings to decide on, the most dollars first, for the mouse and for the keyboard alone. */
export default function Review() {
  const may = useMay();
  const toast = useToast();
  const [, go] = useLocation();
  const [provider, setProvider] = useFilter<string>('provider', '');
  const [direction, setDirection] = useFilter<'overcharge' | 'undercharge'>('direction', 'overcharge');
  const [status, setStatus] = useFilter<ReviewItem['status']>('status', 'open');
  const [decided, setDecided] = useState<Decided[]>([]);
  const [isDismissing, setIsDismissing] = useState(false);
  const [conflict, setConflict] = useState<ReactNode>();
  const list = useRef<HTMLUListElement>(null);
  const { decide, isBusy } = useDecision();
  const filters = { provider: provider || undefined, direction, status };
  const queue = query.useQuery(
    'get',
    PATH,
    { params: { query: { ...filters, limit: ROWS_MAX } } },
    { refetchInterval: POLL_MS },
  );
  const isOwn = (id: string) => decided.some((one) => one.id === id);
  const items = (queue.data?.items ?? []).filter((one) => one.status !== 'open' || !isOwn(one.id));
  const { item, at, isGone, choose } = useChosenItem(items, JSON.stringify(filters), isOwn);
  const mayDecide = may({ scope: 'financial:write' });
  const canDecide = mayDecide && item?.status === 'open' && item.kind !== 'policy' && !isBusy;

  const confirm = async () => {
    if (!canDecide || !item || item.direction !== 'overcharge') return;
    const result = await decide(item.id, { kind: 'confirm' });
    setConflict(result.error);
    if (result.error) return;
    setDecided((before) => [
      ...before,
      { id: item.id, kind: 'confirmed', impact: item.impact_usd_exact, disputeId: result.disputeId },
    ]);
    toast(`Confirmed: a dispute over ${kindName(item.kind).toLowerCase()} is open.`);
  };
  const dismiss = async (reason: string) => {
    if (!item) return {};
    const result = await decide(item.id, { kind: 'dismiss', reason });
    if (result.error) return result;
    setIsDismissing(false);
    setConflict(undefined);
    setDecided((before) => [...before, { id: item.id, kind: 'dismissed', impact: item.impact_usd_exact }]);
    toast('Dismissed.');
    return result;
  };
  const move = (step: number) => {
    // The item that took the place of a decided one is the next.
    const next = Math.max(0, Math.min(items.length - 1, isGone && step > 0 ? at : at + step));
    choose(next);
    setConflict(undefined);
    list.current?.querySelectorAll('button')[next]?.focus();
  };
  useTriageKeys({
    j: () => move(1),
    k: () => move(-1),
    c: () => void confirm(),
    d: () => canDecide && setIsDismissing(true),
    Enter: () => item && item.kind !== 'policy' && go(`/findings/${item.id}`),
  });
  // A decision removes the item from the list; the one that takes its place gets the focus that was lost.
  const length = items.length;
  useEffect(() => {
    if (decided.length > 0 && length > 0 && document.activeElement === document.body)
      list.current?.querySelector<HTMLButtonElement>('[aria-current]')?.focus();
  }, [decided.length, length]);

  const isFiltered = provider !== '' || direction !== 'overcharge' || status !== 'open';
  const clear = () => go('/review');
  return (
    <Page
      title="Review queue"
      lead="Findings to decide on, the most dollars first. Confirm what the provider charged wrongly; dismiss the rest."
      actions={
        <>
          <ButtonLink href="/findings">All findings</ButtonLink>
          <DownloadLink href={withQuery('/api/v1/financial/review-queue', { ...filters, format: 'csv' })}>
            CSV
          </DownloadLink>
        </>
      }
      filters={
        <>
          <ProviderFilter value={provider} onChange={setProvider} />
          <Select
            label="Direction"
            value={direction}
            onChange={setDirection}
            options={[
              { value: 'overcharge', label: 'Overcharges' },
              { value: 'undercharge', label: 'Undercharges' },
            ]}
          />
          <Select
            label="Status"
            value={status}
            onChange={setStatus}
            options={(Object.keys(STATUS) as ReviewItem['status'][]).map((value) => ({
              value,
              label: STATUS[value].label,
            }))}
          />
          {isFiltered && <ClearFilters onPress={clear} />}
        </>
      }
    >
      {queue.isPending ? (
        <Loading />
      ) : queue.error ? (
        <ErrorState error={queue.error} retry={() => void queue.refetch()} />
      ) : (
        <>
          <div className={css.total} role="status">
            <span>
              <strong>{count(queue.data.total_items)}</strong>{' '}
              {status === 'open' ? 'to review' : STATUS[status].label.toLowerCase()},{' '}
              <strong>
                <Money usd={queue.data.total_impact_usd} isClaimable />
              </strong>
            </span>
            {decided.length > 0 && (
              <span>
                Reviewed now: <strong>{count(decided.length)}</strong>,{' '}
                <strong>
                  <Money usd={exactSum(decided.map(({ impact }) => impact))} />
                </strong>{' '}
                ({count(decided.filter(({ kind }) => kind === 'confirmed').length)} confirmed)
              </span>
            )}
            {decided.some(({ kind }) => kind === 'confirmed') && (
              <ButtonLink
                kind="primary"
                href={withQuery('/disputes', { status: 'open', chosen: chosenOf(decided) })}
              >
                Claim what is confirmed
              </ButtonLink>
            )}
          </div>
          {conflict !== undefined ? (
            <Notice kind="warn">{conflict}</Notice>
          ) : (
            isGone && (
              <Notice kind="warn">
                Another person has decided on the finding shown here. Choose another one.
              </Notice>
            )
          )}
          {!item ? (
            isFiltered ? (
              <Empty title="No item matches">
                <Button onPress={clear}>Clear filters</Button>
              </Empty>
            ) : (
              <Empty title="No open review items">
                <p>
                  Findings appear here after a run that compares bills with calls, once the provider can no
                  longer restate the days.
                </p>
                <ButtonLink href="/gaps">Open the gap explorer</ButtonLink>
              </Empty>
            )
          ) : (
            <div className={css.columns}>
              <ul className={css.list} ref={list} aria-label="Review items">
                {items.map((one, index) => (
                  <li key={one.id}>
                    <button
                      type="button"
                      className={css.item}
                      aria-current={one.id === item.id ? 'true' : undefined}
                      onClick={() => {
                        choose(index);
                        setConflict(undefined);
                      }}
                    >
                      <span className={css.row}>
                        <span className={css.title}>{kindName(one.kind)}</span>
                        <Money usd={one.impact_usd_exact} isClaimable />
                      </span>
                      <span className={css.small}>
                        {[
                          one.provider ? providerName(one.provider) : 'Several providers',
                          one.model,
                          daysOf(one),
                        ]
                          .filter(Boolean)
                          .join(' · ')}
                      </span>
                    </button>
                  </li>
                ))}
              </ul>
              <div className={css.side}>
                <ReviewCard
                  item={item}
                  mayDecide={mayDecide}
                  isBusy={isBusy}
                  onConfirm={() => void confirm()}
                  onDismiss={() => setIsDismissing(true)}
                />
                <p className={css.keys}>
                  <kbd>j</kbd> <kbd>k</kbd> next and previous · <kbd>Enter</kbd> all evidence
                  {mayDecide && (
                    <>
                      {' '}
                      · <kbd>c</kbd> confirm · <kbd>d</kbd> dismiss
                    </>
                  )}
                </p>
              </div>
            </div>
          )}
          {queue.data.has_more && (
            <p className={css.keys}>
              The queue shows the {ROWS_MAX} largest items; the others follow as these are decided.
            </p>
          )}
        </>
      )}
      {isDismissing && item && (
        <DismissDialog
          title={`${kindName(item.kind)}, ${daysOf(item)}`}
          isBusy={isBusy}
          onDismiss={dismiss}
          onClose={() => setIsDismissing(false)}
        />
      )}
    </Page>
  );
}

const chosenOf = (decided: readonly Decided[]) =>
  decided.flatMap(({ disputeId }) => disputeId ?? []).join(',');
