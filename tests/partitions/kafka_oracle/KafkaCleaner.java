import java.io.File;
import java.util.Optional;
import java.util.Properties;
import java.util.function.Supplier;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.Cleaner;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogToClean;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.SkimpyOffsetMap;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.utils.Throttler;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/** Opens a partition's folder with Kafka's own log and cleans it with Kafka's own cleaner: once for
 * each of the given times. Prints what Kafka makes of the log after opening it. */
public class KafkaCleaner {
    public static void main(String[] args) throws Exception {
        File folder = new File(args[0]);
        long endOffset = Long.parseLong(args[1]);
        Properties settings = new Properties();
        settings.put("cleanup.policy", "compact");
        settings.put("delete.retention.ms", args[3]);
        settings.put("file.delete.delay.ms", "0");
        settings.put("internal.segment.bytes", args[2]);
        Time time = new At(Long.parseLong(args[4]));
        KafkaScheduler scheduler = new KafkaScheduler(1);
        scheduler.startup();
        UnifiedLog log = UnifiedLog.create(
            folder, new LogConfig(settings), 0, endOffset, scheduler, new BrokerTopicStats(), time,
            Integer.MAX_VALUE, new ProducerStateManagerConfig(Integer.MAX_VALUE, false), 600000,
            new LogDirFailureChannel(1), true, Optional.empty());
        System.out.println("end " + log.logEndOffset());
        log.producerStateManager().activeProducers().forEach((id, entry) -> System.out.println(
            "producer " + id + " " + entry.producerEpoch() + " " + entry.lastSeq() + " "
            + entry.lastDataOffset() + " " + entry.currentTxnFirstOffset().orElse(-1L)));
        log.updateHighWatermark(log.logEndOffset());
        Cleaner cleaner = new Cleaner(
            0, new SkimpyOffsetMap(1 << 20), 1 << 16, 1 << 20, 0.9,
            new Throttler(Double.MAX_VALUE, 300, "t", "e", Time.SYSTEM), Time.SYSTEM, partition -> { });
        for (int number = 4; number < args.length; number++) {
            LogToClean target = new LogToClean(log, 0, log.activeSegment().baseOffset(), false);
            cleaner.doClean(target, Long.parseLong(args[number]));
        }
        log.close();
        scheduler.shutdown();
    }

    /** The time at which the log was written: by today's, its producers have expired. */
    private record At(long milliseconds) implements Time {
        public long nanoseconds() {
            return System.nanoTime();
        }

        public void sleep(long ms) { }

        public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) {
            throw new UnsupportedOperationException();
        }
    }
}
