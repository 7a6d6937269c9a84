import { type ReactNode, useState } from 'react';
import { Button } from '../../../parts/forms/Button';
import { Form, TextField } from '../../../parts/forms/Fields';
import { Modal } from '../../../parts/forms/Modal';
import { Notice } from '../../../parts/States';
import type { DecisionResult } from './useDecision';

const REASONS = [
  'Expected, no mistake',
  'Too small to pursue',
  'Our own mistake',
  'Already settled with the provider',
];

/** Asks for the reason of a dismissal. A refused dismissal keeps what was typed. */
export function DismissDialog({
  title,
  isBusy,
  onDismiss,
  onClose,
}: {
  title: string;
  isBusy: boolean;
  onDismiss: (reason: string) => Promise<DecisionResult>;
  onClose: () => void;
}) {
  const [reason, setReason] = useState('');
  const [error, setError] = useState<ReactNode>();
  return (
    <Modal title="Dismiss the finding" isOpen onClose={onClose}>
      <Form
        onSubmit={() => void onDismiss(reason.trim()).then((result) => setError(result.error))}
        actions={
          <>
            <Button kind="primary" type="submit" isPending={isBusy} isDisabled={reason.trim() === ''}>
              {isBusy ? 'Saving …' : 'Dismiss'}
            </Button>
            <Button onPress={onClose}>Cancel</Button>
          </>
        }
      >
        <p>{title}</p>
        <TextField
          label="Reason"
          value={reason}
          onChange={setReason}
          isRequired
          autoFocus
          lines={3}
          maxLength={4_000}
          help="Kept with the finding and in the audit log. Later runs do not reopen it."
        />
        <div style={{ display: 'flex', flexWrap: 'wrap', gap: 8 }}>
          {REASONS.map((one) => (
            <Button key={one} onPress={() => setReason(one)}>
              {one}
            </Button>
          ))}
        </div>
        {error !== undefined && <Notice kind="warn">{error}</Notice>}
      </Form>
    </Modal>
  );
}
