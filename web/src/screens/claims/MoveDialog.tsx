import { useState } from 'react';
import { api, errorText, isProblem, type Problem } from '../../api/client';
import { DENIAL_KINDS } from '../../app/kinds';
import { Button } from '../../parts/forms/Button';
import { Form, Select, TextField } from '../../parts/forms/Fields';
import { useIdempotencyKey } from '../../parts/forms/idempotency';
import { Modal } from '../../parts/forms/Modal';
import { Cents } from '../../parts/Money';
import { Notice } from '../../parts/States';
import { useToast } from '../../parts/Toasts';
import { useClaimChange } from './useClaimChange';
import { type Claim, type ClaimStatus, centsOf, dollarsOf, type ListedClaim, STATUS } from './words';

type DenialKind = (typeof DENIAL_KINDS)[number]['value'] | '';

const KIND_CHOICES: readonly { value: DenialKind; label: string }[] = [
  { value: '', label: 'Choose one' },
  ...DENIAL_KINDS,
];

/** Moves a claim to a status, with the fields that this status needs. */
export function MoveDialog({
  claim,
  to,
  cents,
  onClose,
}: {
  claim: ListedClaim | Claim;
  to: ClaimStatus;
  /** The amount that a proposed credit suggests. */
  cents?: number;
  onClose: () => void;
}) {
  const needsCredit = to === 'credit_issued' || to === 'partial';
  const isDenial = to === 'denied';
  const [ticket, setTicket] = useState(claim.external_ticket_id ?? '');
  const [credit, setCredit] = useState(
    cents !== undefined
      ? dollarsOf(cents)
      : to === 'credit_issued'
        ? dollarsOf(claim.total_recoverable_cents)
        : '',
  );
  const [reason, setReason] = useState('');
  const [kind, setKind] = useState<DenialKind>('');
  const [isBusy, setIsBusy] = useState(false);
  const [problem, setProblem] = useState<unknown>();
  const [statusBefore] = useState(claim.status);
  const [statusNow, setStatusNow] = useState<ClaimStatus>();
  const toast = useToast();
  const changed = useClaimChange();
  const keyOf = useIdempotencyKey();
  const creditCents = centsOf(credit);
  const creditError = !needsCredit
    ? undefined
    : credit !== '' && creditCents === undefined
      ? 'Write dollars and cents, for example 135.00.'
      : creditCents === 0
        ? 'The credit is above zero.'
        : to === 'partial' && creditCents !== undefined && creditCents >= claim.total_recoverable_cents
          ? 'A partial credit is below the claim. Choose “Record the credit” for the whole amount.'
          : fieldError(problem, 'credit_issued_cents');
  const isReady =
    (!needsCredit || (creditCents !== undefined && creditCents > 0 && !creditError)) &&
    (!isDenial || (reason.trim() !== '' && kind !== ''));
  const send = async () => {
    setIsBusy(true);
    setProblem(undefined);
    const params = { path: { id: claim.id } };
    const body = {
      status: to,
      ...(ticket.trim() && ticket.trim() !== claim.external_ticket_id
        ? { external_ticket_id: ticket.trim() }
        : {}),
      ...(needsCredit ? { credit_issued_cents: creditCents } : {}),
      ...(isDenial ? { denial_reason: reason.trim(), violation_type: kind as never } : {}),
    };
    const header = { 'Idempotency-Key': keyOf([body, claim.version]) };
    try {
      const answer =
        claim.status === 'draft' && to === 'submitted_to_provider' && !('external_ticket_id' in body)
          ? await api.POST('/api/v1/claims/{id}/submit', { params: { ...params, header } })
          : await api.PATCH('/api/v1/claims/{id}/status', { params: { ...params, header }, body });
      if (answer.data) {
        const [warning] = answer.data.warnings;
        toast(`The claim is now: ${STATUS[to].label}.${warning ? ` ${warning.message}` : ''}`);
        onClose();
        await changed();
        return;
      }
      setProblem(answer.error);
      if (isProblem(answer.error) && answer.error.status === 409) {
        const now = await api.GET('/api/v1/claims/{id}', { params });
        setStatusNow(now.data?.status);
        await changed();
      }
    } catch (failure) {
      setProblem(failure);
    } finally {
      setIsBusy(false);
    }
  };
  return (
    <Modal title={STATUS[to].move} isOpen onClose={onClose}>
      <Form
        onSubmit={() => void send()}
        actions={
          <>
            <Button
              kind={isDenial ? 'danger' : 'primary'}
              type="submit"
              isPending={isBusy}
              isDisabled={!isReady}
            >
              {isBusy ? 'Saving …' : STATUS[to].move}
            </Button>
            <Button onPress={onClose}>Cancel</Button>
          </>
        }
      >
        <p>{explanation(to)}</p>
        {needsCredit && (
          <TextField
            label="Credit in US dollars"
            value={credit}
            onChange={setCredit}
            isRequired
            inputMode="decimal"
            error={creditError}
            help={
              <>
                The claim asks for <Cents cents={claim.total_recoverable_cents} />.
              </>
            }
          />
        )}
        {isDenial && (
          <>
            <TextField
              label="The provider’s reason"
              value={reason}
              onChange={setReason}
              isRequired
              lines={4}
              maxLength={4_000}
              error={fieldError(problem, 'denial_reason')}
            />
            <Select
              label="Kind of difference, according to the provider"
              value={kind}
              options={KIND_CHOICES}
              onChange={setKind}
            />
          </>
        )}
        <TextField
          label="The provider’s ticket (optional)"
          value={ticket}
          onChange={setTicket}
          error={fieldError(problem, 'external_ticket_id')}
        />
        {statusNow !== undefined ? (
          <Notice kind="warn">
            {statusNow === statusBefore
              ? errorText(problem)
              : `Another person changed this claim first. It is now: ${STATUS[statusNow].label}. Your entries are still here.`}
          </Notice>
        ) : (
          problem !== undefined && <Notice kind="bad">{errorText(problem)}</Notice>
        )}
      </Form>
    </Modal>
  );
}

function explanation(to: ClaimStatus): string {
  switch (to) {
    case 'submitted_to_provider':
      return 'Trueup sends nothing to the provider. Send the evidence yourself, then record it here. The evidence stays frozen from now on.';
    case 'denied':
      return 'A denial ends the claim and resolves its disputes. If you contest the refusal, escalate instead.';
    case 'credit_issued':
    case 'partial':
      return 'This ends the claim and resolves its disputes.';
    case 'escalated':
      return 'An escalated claim gets a ticket draft that you can copy to the provider’s support.';
    default:
      return 'Records the provider’s response in the history of the claim.';
  }
}

function fieldError(problem: unknown, field: string): string | undefined {
  if (!isProblem(problem)) return undefined;
  return (problem as Problem).errors?.find((one) => one.field.endsWith(field))?.message;
}
