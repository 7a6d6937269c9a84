import { useState } from 'react';
import { api, errorText, isProblem } from '../../../api/client';
import { time } from '../../../app/format';
import { Confirm } from '../../../parts/forms/Confirm';
import { Select, TextField } from '../../../parts/forms/Fields';
import { useIdempotencyKey } from '../../../parts/forms/idempotency';
import { Notice } from '../../../parts/States';
import { useToast } from '../../../parts/Toasts';
import { useClaimChange } from '../useClaimChange';
import { type Dispute, RESOLUTIONS, resolutionName } from './words';

type Resolution = (typeof RESOLUTIONS)[number]['value'];

/** Resolves a dispute without a claim. After a conflict the dialog shows the other decision and keeps what was typed. */
export function ResolveDialog({ dispute, onClose }: { dispute: Dispute; onClose: () => void }) {
  const [resolution, setResolution] = useState<Resolution>('provider_correct');
  const [notes, setNotes] = useState(dispute.notes ?? '');
  const [isBusy, setIsBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const [now, setNow] = useState<Dispute>();
  const toast = useToast();
  const changed = useClaimChange();
  const keyOf = useIdempotencyKey();
  const send = async () => {
    setIsBusy(true);
    setError(undefined);
    const path = { id: dispute.id };
    const body = { resolution, notes: notes.trim() || null };
    try {
      const answer = await api.POST('/api/v1/financial/disputes/{id}', {
        params: { path, header: { 'Idempotency-Key': keyOf(body) } },
        body,
      });
      if (answer.data) {
        toast('The dispute is resolved.');
        onClose();
      } else {
        setError(answer.error);
        if (isProblem(answer.error) && answer.error.status === 409)
          setNow((await api.GET('/api/v1/financial/disputes/{id}', { params: { path } })).data);
      }
      await changed();
    } catch (failure) {
      setError(failure);
    } finally {
      setIsBusy(false);
    }
  };
  return (
    <Confirm
      title="Resolve the dispute"
      action="Resolve"
      isOpen
      isBusy={isBusy}
      error={now ? undefined : error}
      onClose={onClose}
      onConfirm={() => void send()}
    >
      <p>Its days no longer count as recoverable. A resolution cannot be undone.</p>
      <Select label="Resolution" value={resolution} options={RESOLUTIONS} onChange={setResolution} />
      <TextField
        label="Notes (optional)"
        value={notes}
        onChange={setNotes}
        lines={3}
        maxLength={4_000}
        help="They replace the former notes."
      />
      {now && (
        <Notice kind="warn">
          {now.status === 'resolved' && now.resolved_at
            ? `Another person resolved it first: ${resolutionName(now.resolution ?? '')}, ${time(now.resolved_at)}.`
            : errorText(error)}
        </Notice>
      )}
    </Confirm>
  );
}
