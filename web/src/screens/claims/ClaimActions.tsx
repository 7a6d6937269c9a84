import { useState } from 'react';
import { Checkbox } from 'react-aria-components';
import { useLocation } from 'wouter';
import { api, errorText, query } from '../../api/client';
import { day } from '../../app/format';
import { useMay } from '../../app/session';
import { Button } from '../../parts/forms/Button';
import { Confirm } from '../../parts/forms/Confirm';
import { DateField } from '../../parts/forms/DateField';
import { newIdempotencyKey } from '../../parts/forms/idempotency';
import { Cents } from '../../parts/Money';
import { Empty, Loading } from '../../parts/States';
import { useToast } from '../../parts/Toasts';
import css from './Claim.module.css';
import { useClaimChange } from './useClaimChange';
import { type Claim, daysOf, isOver } from './words';

const DAY_MS = 86_400_000;
const SNOOZE_DAYS = 7;

type Open = 'snooze' | 'merge' | 'discard' | undefined;

/** Snoozing reminders; merging and discarding drafts. */
export function ClaimActions({ claim }: { claim: Claim }) {
  const may = useMay();
  const [open, setOpen] = useState<Open>();
  const close = () => setOpen(undefined);
  const change = useChange(close);
  if (!may({ scope: 'claims:write' }) || isOver(claim)) return null;
  const params = { path: { id: claim.id } };
  return (
    <>
      {claim.snoozed_until && (
        <Button
          isPending={change.isBusy}
          onPress={() =>
            void change.run('Reminders are on again.', () =>
              api.POST('/api/v1/claims/{id}/snooze', { params, body: { until: null } }),
            )
          }
        >
          End snooze
        </Button>
      )}
      <Button onPress={() => setOpen('snooze')}>Snooze</Button>
      {claim.status === 'draft' && (
        <>
          <Button onPress={() => setOpen('merge')}>Merge</Button>
          <Button kind="danger" onPress={() => setOpen('discard')}>
            Discard
          </Button>
        </>
      )}
      {open === 'snooze' && <Snooze claim={claim} change={change} onClose={close} />}
      {open === 'merge' && <Merge claim={claim} change={change} onClose={close} />}
      {open === 'discard' && <Discard claim={claim} change={change} onClose={close} />}
    </>
  );
}

type Change = ReturnType<typeof useChange>;

function useChange(onDone: () => void) {
  const [isBusy, setIsBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const toast = useToast();
  const changed = useClaimChange();
  const run = async (success: string, send: () => Promise<{ error?: unknown }>, after?: () => void) => {
    setIsBusy(true);
    setError(undefined);
    try {
      const answer = await send();
      if (answer.error) {
        setError(answer.error);
        toast(errorText(answer.error), 'bad');
      } else {
        toast(success);
        onDone();
        after?.();
      }
      await changed();
    } catch (failure) {
      setError(failure);
    } finally {
      setIsBusy(false);
    }
  };
  return { run, isBusy, error };
}

interface DialogProps {
  claim: Claim;
  change: Change;
  onClose: () => void;
}

function Snooze({ claim, change, onClose }: DialogProps) {
  const [until, setUntil] = useState(() => day(new Date(Date.now() + SNOOZE_DAYS * DAY_MS).toISOString()));
  return (
    <Confirm
      title="Snooze reminders"
      action="Snooze"
      isOpen
      isBusy={change.isBusy}
      isDisabled={until === ''}
      error={change.error}
      onClose={onClose}
      onConfirm={() =>
        void change.run(`No reminders until ${until}.`, () =>
          api.POST('/api/v1/claims/{id}/snooze', { params: { path: { id: claim.id } }, body: { until } }),
        )
      }
    >
      <p>
        Reminders of this claim stop until this day of the organization’s time zone. The next move ends the
        snooze.
      </p>
      <DateField label="Until" value={until} onChange={setUntil} />
    </Confirm>
  );
}

function Merge({ claim, change, onClose }: DialogProps) {
  const [chosen, setChosen] = useState<readonly string[]>([]);
  const drafts = query.useQuery('get', '/api/v1/claims', {
    params: { query: { status: 'draft', provider: claim.provider, limit: 200 } },
  });
  const others = (drafts.data?.claims ?? []).filter(
    (one) => one.id !== claim.id && one.provider_account_id === claim.provider_account_id,
  );
  return (
    <Confirm
      title="Merge drafts"
      action="Merge into this claim"
      isOpen
      isBusy={change.isBusy}
      isDisabled={chosen.length === 0}
      error={change.error}
      onClose={onClose}
      onConfirm={() =>
        void change.run('The drafts are merged.', () =>
          api.POST('/api/v1/claims/{id}/merge', {
            params: { path: { id: claim.id }, header: { 'Idempotency-Key': newIdempotencyKey() } },
            body: { claim_ids: [...chosen] },
          }),
        )
      }
    >
      {drafts.isPending ? (
        <Loading rows={2} />
      ) : others.length === 0 ? (
        <Empty title="No other draft of this account" />
      ) : (
        <>
          <p>This claim takes over the disputes of the chosen drafts, and those drafts are removed.</p>
          <ul className={css.list}>
            {others.map((one) => (
              <li key={one.id}>
                <Checkbox
                  className={css.row}
                  isSelected={chosen.includes(one.id)}
                  onChange={(isChosen) =>
                    setChosen(isChosen ? [...chosen, one.id] : chosen.filter((id) => id !== one.id))
                  }
                >
                  <span>
                    {chosen.includes(one.id) ? '☑' : '☐'} {daysOf(one)}
                  </span>
                  <Cents cents={one.total_recoverable_cents} />
                </Checkbox>
              </li>
            ))}
          </ul>
        </>
      )}
    </Confirm>
  );
}

function Discard({ claim, change, onClose }: DialogProps) {
  const [, go] = useLocation();
  return (
    <Confirm
      title="Discard this draft?"
      action="Discard the draft"
      isDanger
      isOpen
      isBusy={change.isBusy}
      error={change.error}
      onClose={onClose}
      onConfirm={() =>
        void change.run(
          'The draft is discarded; its disputes are open.',
          () => api.DELETE('/api/v1/claims/{id}', { params: { path: { id: claim.id } } }),
          () => go('/claims'),
        )
      }
    >
      <p>
        Its disputes stay open and belong to no claim. The next run of the provider drafts them again, unless
        they are resolved or in another claim.
      </p>
    </Confirm>
  );
}
