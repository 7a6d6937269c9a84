import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api } from '../../../api/client';
import { useMay } from '../../../app/session';
import { Button } from '../../../parts/forms/Button';
import { Confirm } from '../../../parts/forms/Confirm';
import { useToast } from '../../../parts/Toasts';
import { thisMonth } from './lines';

export interface ListedPeriod {
  period: string;
  status: 'open' | 'closed';
}

/** Whether the API would close this month: it is over, and no earlier month is open after a first closing. */
export function canClose(period: string, periods: readonly ListedPeriod[]): boolean {
  const own = periods.find((one) => one.period === period);
  if (own?.status !== 'open' || period >= thisMonth()) return false;
  return (
    periods.every(({ status }) => status === 'open') ||
    periods.every((one) => one.status === 'closed' || one.period >= period)
  );
}

/** Closes a month after a confirmation. Nothing for people who may not close it, and where it cannot be closed now. */
export function CloseMonth({ period, periods }: { period: string; periods: readonly ListedPeriod[] }) {
  const may = useMay();
  const toast = useToast();
  const client = useQueryClient();
  const [isOpen, setIsOpen] = useState(false);
  const [isBusy, setIsBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  if (!may({ scope: 'org:admin', admin: true }) || !canClose(period, periods)) return null;
  const earlier = periods.filter((one) => one.status === 'open' && one.period < period).length;
  const close = async () => {
    setIsBusy(true);
    setError(undefined);
    try {
      const answer = await api.POST('/api/v1/periods/{period}/close', { params: { path: { period } } });
      if (answer.error) {
        setError(answer.error);
        return;
      }
      toast(`${period} is closed.`);
      setIsOpen(false);
      await client.invalidateQueries();
    } catch (failure) {
      setError(failure);
    } finally {
      setIsBusy(false);
    }
  };
  return (
    <>
      <Button onPress={() => setIsOpen(true)}>Close {period} …</Button>
      <Confirm
        title={`Close ${period}?`}
        action={`Close ${period}`}
        isDanger
        isOpen={isOpen}
        isBusy={isBusy}
        error={error}
        onConfirm={() => void close()}
        onClose={() => setIsOpen(false)}
      >
        <p>
          Its totals and bills stay as they are now. Every later change becomes an adjustment of a later
          month. A closed month cannot be opened again.
        </p>
        {earlier > 0 && (
          <p>
            <strong>
              {earlier} earlier {earlier === 1 ? 'month is' : 'months are'} closed with it.
            </strong>
          </p>
        )}
      </Confirm>
    </>
  );
}
