import { type ReactNode, useRef, useState } from 'react';
import { api, errorText, isProblem } from '../../../api/client';
import { time } from '../../../app/format';
import { Actor } from '../../../parts/Actor';
import { useIdempotencyKey } from '../../../parts/forms/idempotency';
import { useClaimChange } from '../useClaimChange';
import { type Finding, STATUS } from './words';

export type Decision = { kind: 'confirm' } | { kind: 'reopen' } | { kind: 'dismiss'; reason: string };

export interface DecisionResult {
  /** The dispute that a confirmation opened or found. */
  disputeId?: string;
  /** The sentence for a person; undefined after a success. */
  error?: ReactNode;
  /** Another person decided first. */
  isConflict?: boolean;
}

/** Confirms or dismisses a finding. After a conflict the result names the present state. */
export function useDecision() {
  const [isBusy, setIsBusy] = useState(false);
  // Two presses of a key before the next render must not send two requests.
  const isSending = useRef(false);
  const changed = useClaimChange();
  // A decision whose answer was lost is repeated, not made twice.
  const keyOf = useIdempotencyKey();
  const decide = async (id: string, decision: Decision): Promise<DecisionResult> => {
    if (isSending.current) return { error: 'The last decision is still being saved.' };
    isSending.current = true;
    setIsBusy(true);
    const params = { path: { id }, header: { 'Idempotency-Key': keyOf([id, decision]) } };
    try {
      if (decision.kind === 'dismiss') {
        const { data, error } = await api.POST('/api/v1/financial/review-queue/{id}/dismiss', {
          params,
          body: { reason: decision.reason },
        });
        if (error) return await refusal(id, error);
        // A second dismissal is no error of the API, and changes nothing.
        return data.decision_reason === decision.reason ? {} : decidedFirst(data);
      }
      const { data, error } = await api.POST('/api/v1/financial/review-queue/{id}/confirm', {
        params,
        body: decision.kind === 'reopen' ? { reopen: true } : {},
      });
      if (error) return await refusal(id, error);
      return { disputeId: data.id };
    } catch (failure) {
      return { error: errorText(failure) };
    } finally {
      isSending.current = false;
      setIsBusy(false);
      void changed();
    }
  };
  return { decide, isBusy };
}

async function refusal(id: string, error: unknown): Promise<DecisionResult> {
  if (!isProblem(error) || error.status !== 409) return { error: errorText(error) };
  const { data } = await api.GET('/api/v1/financial/findings/{id}', { params: { path: { id } } });
  if (!data || data.status === 'open') return { error: errorText(error) };
  return decidedFirst(data);
}

function decidedFirst({
  status,
  decided_by,
  decided_at,
  decision_reason,
}: Pick<Finding, 'status' | 'decided_by' | 'decided_at' | 'decision_reason'>): DecisionResult {
  return {
    isConflict: true,
    error: (
      <>
        Another person decided first: <Actor id={decided_by} />
        {decided_at && `, ${time(decided_at)}`}. This finding is now: {STATUS[status].label}
        {decision_reason && ` (“${decision_reason}”)`}.
      </>
    ),
  };
}
