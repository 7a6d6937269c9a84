import type { ReactNode } from 'react';
import { Button } from './Button';
import { Form } from './Fields';
import { FormError } from './FormError';
import { Modal } from './Modal';

/** Asks before an action: what it does, and a button that names it. The sentence of a failure stays in the dialog. */
export function Confirm({
  title,
  action,
  isOpen,
  isBusy,
  isDisabled,
  isDanger = false,
  error,
  onConfirm,
  onClose,
  children,
}: {
  title: string;
  action: string;
  isOpen: boolean;
  isBusy?: boolean;
  isDisabled?: boolean;
  isDanger?: boolean;
  error?: unknown;
  onConfirm: () => void;
  onClose: () => void;
  children?: ReactNode;
}) {
  return (
    <Modal title={title} isOpen={isOpen} onClose={onClose}>
      <Form
        onSubmit={onConfirm}
        actions={
          <>
            <Button
              kind={isDanger ? 'danger' : 'primary'}
              type="submit"
              isPending={isBusy === true}
              isDisabled={isDisabled === true}
            >
              {isBusy ? 'One moment …' : action}
            </Button>
            <Button onPress={onClose}>Cancel</Button>
          </>
        }
      >
        {children}
        <FormError error={error} />
      </Form>
    </Modal>
  );
}
