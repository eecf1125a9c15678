import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.Properties;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.serialization.StringDeserializer;

/** A member of a group with Kafka's own client: what group_member.py is for Python's. */
public class GroupMember {
  static volatile boolean stop = false;

  public static void main(String[] arguments) throws IOException {
    Properties settings = new Properties();
    settings.put("group.protocol", arguments[0]);
    settings.put("bootstrap.servers", arguments[1]);
    settings.put("group.id", arguments[3]);
    settings.put("auto.offset.reset", "earliest");
    settings.put("enable.auto.commit", "false");
    if (arguments[0].equals("classic")) {
      settings.put("session.timeout.ms", System.getenv("SESSION_MS"));
      settings.put("heartbeat.interval.ms", "300");
    }
    if (arguments.length > 4) {
      settings.put("group.instance.id", arguments[4]);
    }
    while (System.in.read() != '\n') {}
    Thread end = new Thread(GroupMember::waitForTheEnd);
    end.setDaemon(true);
    end.start();
    StringDeserializer text = new StringDeserializer();
    String owned = null;
    try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings, text, text)) {
      consumer.subscribe(List.of(arguments[2]));
      while (!stop) {
        var records = consumer.poll(Duration.ofMillis(100));
        String now =
            consumer.assignment().stream()
                .map(each -> each.partition())
                .sorted()
                .map(each -> " " + each)
                .collect(Collectors.joining());
        if (!now.equals(owned)) {
          owned = now;
          System.out.println("owns" + owned);
        }
        records.forEach(each -> System.out.println("read " + each.value()));
        if (!records.isEmpty()) {
          try {
            consumer.commitSync();
          } catch (KafkaException error) {
            System.out.println("refused " + error);
          }
        }
      }
    }
    System.out.println("left");
  }

  static void waitForTheEnd() {
    try {
      System.in.readAllBytes();
    } catch (IOException error) {
      // The end, too.
    }
    stop = true;
  }
}
