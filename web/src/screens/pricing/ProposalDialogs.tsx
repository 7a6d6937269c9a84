import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { query } from '../../api/client';
import { providerName } from '../../app/providers';
import { Confirm } from '../../parts/forms/Confirm';
import { DateField } from '../../parts/forms/DateField';
import { TextField } from '../../parts/forms/Fields';
import { Money } from '../../parts/Money';
import { useToast } from '../../parts/Toasts';
import type { Proposal } from './Proposals';

const today = () => new Date().toISOString().slice(0, 10);

/** The end of a dialog. After a refusal it stays open with its sentence, and the list behind it is read again. */
function useAnswer(onEnd: () => void) {
  const client = useQueryClient();
  const toast = useToast();
  const reload = () =>
    Promise.all(
      ['proposals', 'overrides'].map((name) =>
        client.invalidateQueries({ queryKey: ['get', `/api/v1/pricing/${name}`] }),
      ),
    );
  return (said: string) => ({
    onSuccess: async () => {
      toast(said);
      onEnd();
      await reload();
    },
    onError: () => void reload(),
  });
}

export function ApplyProposal({ row, onEnd }: { row: Proposal; onEnd: () => void }) {
  const [from, setFrom] = useState(today());
  const answer = useAnswer(onEnd);
  const apply = query.useMutation(
    'post',
    '/api/v1/pricing/proposals/{id}/apply',
    answer(`${row.model} now has an override. Calls before ${from} keep their price.`),
  );
  return (
    <Confirm
      title="Apply the proposed price"
      action="Apply it"
      isOpen
      isBusy={apply.isPending}
      isDisabled={from === ''}
      error={apply.error}
      onConfirm={() => apply.mutate({ params: { path: { id: row.id } }, body: { effective_from: from } })}
      onClose={onEnd}
    >
      <p>
        {providerName(row.provider)}, {row.model}, from {row.feed} of {row.retrieved_on}. It becomes an
        override of your organization; the list of the installation stays.
      </p>
      <p>
        The calls of the last 30 days cost <Money usd={row.effect.current_cost_usd} /> now and{' '}
        <Money usd={row.effect.proposed_cost_usd} /> with it.
      </p>
      <DateField label="First day with it (UTC)" value={from} onChange={setFrom} />
    </Confirm>
  );
}

export function DismissProposal({ row, onEnd }: { row: Proposal; onEnd: () => void }) {
  const [reason, setReason] = useState('');
  const answer = useAnswer(onEnd);
  const dismiss = query.useMutation(
    'post',
    '/api/v1/pricing/proposals/{id}/dismiss',
    answer(`Dismissed. Equal rates of ${row.model} are not proposed again.`),
  );
  return (
    <Confirm
      title="Dismiss the proposed price"
      action="Dismiss it"
      isOpen
      isBusy={dismiss.isPending}
      error={dismiss.error}
      onConfirm={() =>
        dismiss.mutate({
          params: { path: { id: row.id } },
          body: { reason: reason.trim() === '' ? null : reason.trim() },
        })
      }
      onClose={onEnd}
    >
      <p>
        {providerName(row.provider)}, {row.model}. Equal rates are not proposed again; other ones are.
      </p>
      <TextField label="Reason (optional)" value={reason} onChange={setReason} />
    </Confirm>
  );
}
